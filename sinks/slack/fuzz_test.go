package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/slackfake"
)

// FuzzMessage: whatever a page holds, Slack takes the message, and its text is escaped.
func FuzzMessage(f *testing.F) {
	f.Add("https://example.com/?a=b&c=<d>", "<!channel>", "stock", "Out of", "Zeus. Out of stock.", "", false)
	f.Add("javascript:alert(1)", "\u2028\x00", " ", "", "", "timeout \xff", true)
	f.Add("https://user:pass@example.com/"+strings.Repeat("&", 300), strings.Repeat("&", 500), "a b", "😀", strings.Repeat("😀", 1000), "", true)
	f.Fuzz(func(t *testing.T, url, title, keyword, text, snippet, reason string, removed bool) {
		event, status := pipeline.Added, pipeline.StatusOK
		if removed {
			event = pipeline.Removed
		}
		if reason != "" {
			status = pipeline.StatusTimeout
		}
		n := pipeline.Notification{
			Status: status, URL: url, ID: "N", Title: title, Reason: reason,
			Diffs: []pipeline.Diff{{Event: event, Keyword: keyword, Text: text, Snippet: snippet}},
		}
		l := render.MessageOf(n, budget)
		blocks, err := json.Marshal(blocksOf(l))
		if err != nil {
			t.Fatal(err)
		}
		if word := slackfake.CheckBlocks(blocks); word != "" {
			t.Errorf("%s: %s", word, blocks)
		}
		said := fallback(l)
		if said == "" || utf8.RuneCountInString(said) >= 300 || !utf8.ValidString(said) || strings.ContainsAny(said, "<>") {
			t.Errorf("the text is %q", said)
		}
		if bare := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(said); strings.Contains(bare, "&") {
			t.Errorf("half an escape is in %q", said)
		}
	})
}
