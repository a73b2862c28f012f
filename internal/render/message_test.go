package render

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestTestMessage checks that nobody takes a message that was sent by hand for news.
func TestTestMessage(t *testing.T) {
	n := pipeline.Notification{Status: pipeline.StatusOK, Type: pipeline.NotificationTypeTest, URL: "https://example.com/",
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "argus", Snippet: "argus"}}}
	m := MessageOf(n, Budget{})
	if m.Headline != "Test: added: argus" || !strings.Contains(m.Reason, "this is a test") {
		t.Errorf("got %+v", m)
	}
	n.Type = pipeline.NotificationType
	if m := MessageOf(n, Budget{}); m.Headline != "added: argus" || m.Reason != "" {
		t.Errorf("got %+v", m)
	}
}

func TestEncoded(t *testing.T) {
	for _, s := range []string{"", "plain <&> ä😀", "\"\\/\n\r\t\b\f\x00\x1b\x7f\u0085", "\u2028\u2029\u202a", "\uFFFD"} {
		quoted, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Encoded(s), len(quoted)-2; got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}
