package slack

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/beside"
	"github.com/vokter/vokter/test/slackfake"
)

var update = flag.Bool("update", false, "write the golden files anew")

// examples are notifications by the names of their golden files.
func examples() map[string]pipeline.Notification {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	change := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://shop.example/item/7?color=red&size=M", ID: "0123456789ABCDEFGHIJKLMNOP",
		Type: pipeline.NotificationType, Time: at, Client: "shop", Version: 7, Title: "Zeus, the god of thunder", Language: "en",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "out of stock", Text: "Out of", Snippet: "Zeus. Out of stock. Order by Friday & save <10 %>.", Offset: 6},
			{Event: pipeline.Added, Keyword: "stock", Text: "Out of", Snippet: "Zeus. Out of stock. Order by Friday & save <10 %>.", Offset: 6},
			{Event: pipeline.Removed, Keyword: "in stock", Text: "In", Snippet: "Zeus. In stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus", Snippet: "... " + strings.Repeat("before ", 150) + "Argus" + strings.Repeat(" behind", 150) + " ..."},
		},
	}
	timeout := change
	timeout.Status, timeout.Diffs, timeout.Reason = pipeline.StatusTimeout, nil, "answered 404 Not Found"
	many := change
	many.Diffs, many.Truncated = nil, true
	for i := range 50 {
		many.Diffs = append(many.Diffs, pipeline.Diff{
			Event: pipeline.Added, Keyword: "price", Text: fmt.Sprintf("Price %d", i), Snippet: fmt.Sprintf("Lot %d. Price %d. Bid now.", i, i), Offset: 30 * i,
		})
	}
	hostile := change
	hostile.Title, hostile.Diffs = "<!channel> *x* & <http://evil.example|bank.example>", []pipeline.Diff{{
		Event: pipeline.Added, Keyword: "login", Text: "Login <@U1> `now`", Snippet: "<!channel> *x* & <http://evil.example|bank.example> :boom: %41\u202e\x00 Login <@U1> `now`",
	}}
	items := change
	items.Diffs = []pipeline.Diff{
		{Event: pipeline.Added, Text: "Senior Go Developer", Snippet: "Senior Go Developer", Item: pipeline.ItemNew, Title: "Senior Go Developer", Edit: 1},
		{Event: pipeline.Added, Text: "Oslo", Snippet: "Oslo", Item: pipeline.ItemNew, Title: "Senior Go Developer", Offset: 20, Edit: 1},
		{Event: pipeline.Removed, Text: "Go Developer, fintech", Snippet: "Go Developer, fintech", Item: pipeline.ItemGone, Title: "Go Developer, fintech", Edit: 2},
		{Event: pipeline.Removed, Text: "5", Snippet: "Anvil · 5 left · in stock", Item: pipeline.ItemChanged, Title: "Anvil", Offset: 40, Edit: 3},
		{Event: pipeline.Added, Text: "6", Snippet: "Anvil · 6 left · in stock", Item: pipeline.ItemChanged, Title: "Anvil", Offset: 45, Edit: 3},
	}
	digest := change
	digest.Type, digest.Diffs = pipeline.NotificationTypeDigest, slices.Concat(change.Diffs[2:3], many.Diffs[:3])
	digest.Items = []pipeline.Item{
		{ID: "A", Time: at.Add(-time.Hour), Version: 6, Title: change.Title, Diffs: 1}, {ID: "B", Time: at, Version: 7, Title: change.Title, Diffs: 3},
	}
	health := pipeline.Notification{
		Status: string(pipeline.HealthFailing), URL: change.URL, ID: change.ID, Type: pipeline.NotificationTypeHealth, Time: at, Diffs: []pipeline.Diff{},
		Health: &pipeline.Health{
			ID: change.ID, Event: pipeline.HealthFailing, Time: at, URL: change.URL, Class: "status", Reason: "answered 503 Service Unavailable",
			Since: at.Add(-3 * time.Hour), Count: 3,
		},
	}
	recovered := health
	recovered.Status = string(pipeline.HealthReceiverRecovered)
	recovered.Health = &pipeline.Health{
		ID: change.ID, Event: pipeline.HealthReceiverRecovered, Time: at, Receiver: &pipeline.Receiver{Sink: "ops"}, Since: at.Add(-time.Hour), Count: 7,
	}
	return map[string]pipeline.Notification{
		"change": change, "items": items, "timeout": timeout, "many": many, "hostile": hostile, "digest": digest, "health": health, "recovered": recovered,
	}
}

// TestGolden compares what is posted with the golden files, and both ways with each other.
func TestGolden(t *testing.T) {
	for name, n := range examples() {
		fake := slackfake.Start(t, nil)
		m := deliver(t, fake, bothKinds(fake, "C1")["bot"], n)
		b := deliver(t, fake, bothKinds(fake, "C1")["webhook"], n)
		if !bytes.Equal(m.Blocks, b.Blocks) || m.Text != b.Text {
			t.Errorf("%s: a webhook gets %s, a bot %s", name, b.Blocks, m.Blocks)
		}
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(struct {
			Text   string `json:"text"`
			Blocks any    `json:"blocks"`
		}{m.Text, m.Blocks}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".golden.json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, &got, want)
		}
	}
}

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
		blocks, err := json.Marshal(layOut(l))
		if err != nil {
			t.Fatal(err)
		}
		if word := slackfake.CheckBlocks(blocks); word != "" {
			t.Errorf("%s: %s", word, blocks)
		}
		said := fallbackText(l)
		if said == "" || utf8.RuneCountInString(said) >= 300 || !utf8.ValidString(said) || strings.ContainsAny(said, "<>") {
			t.Errorf("the text is %q", said)
		}
		if bare := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(said); strings.Contains(bare, "&") {
			t.Errorf("half an escape is in %q", said)
		}
	})
}

// BenchmarkDeliver compares the sinks with bare clients that post the same, laid out
// before: x/bare is the ratio of the medians, taken in turns.
func BenchmarkDeliver(b *testing.B) {
	fake := slackfake.New(nil)
	server := httptest.NewServer(fake)
	defer server.Close()
	fake.URL = server.URL
	fake.Unbound()
	n := examples()["change"]
	n.Diffs = n.Diffs[:3]
	l := render.MessageOf(n, budget)
	blocks, text := layOut(l), fallbackText(l)
	body, err := json.Marshal(webhookPayload{Text: text, Blocks: blocks})
	if err != nil {
		b.Fatal(err)
	}
	client := slackgo.New(slackfake.Token, slackgo.OptionAPIURL(fake.API()))
	bare := map[string]func() error{
		"bot": func() error {
			_, _, err := client.PostMessageContext(b.Context(), "C1", messageOptions(message{id: n.ID, text: text, blocks: blocks}, location{}, false)...)
			return err
		},
		"webhook": func() error {
			resp, err := http.Post(fake.Webhook("C1"), "application/json", bytes.NewReader(body))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if said, err := io.ReadAll(resp.Body); err != nil || string(said) != "ok" {
				return fmt.Errorf("got %q, %w", said, err)
			}
			return nil
		},
	}
	for _, way := range []string{"bot", "webhook"} {
		b.Run(way, func(b *testing.B) {
			s := bothKinds(fake, "C1")[way]
			beside.Run(b, 1, func() error { return s.Deliver(b.Context(), n) }, bare[way])
		})
	}
}

// TestLink: the address of the web page is a link below the differences.
func TestLink(t *testing.T) {
	const at = "https://vokter.example.com/diff?to=2"
	b, err := json.Marshal(layOut(render.Message{Headline: "added: tea", Link: at}))
	if err != nil || !strings.Contains(string(b), `"url":"`+at+`","text":"What changed"`) {
		t.Errorf("got %s, %v", b, err)
	}
}
