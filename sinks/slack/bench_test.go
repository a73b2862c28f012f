package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/test/beside"
	"github.com/vokter/vokter/test/slackfake"
)

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
	blocks, text := blocksOf(l), fallback(l)
	body, err := json.Marshal(payload{Text: text, Blocks: blocks})
	if err != nil {
		b.Fatal(err)
	}
	client := slackgo.New(slackfake.Token, slackgo.OptionAPIURL(fake.API()))
	bare := map[string]func() error{
		"bot": func() error {
			_, _, err := client.PostMessageContext(b.Context(), "C1", optionsOf(message{id: n.ID, text: text, blocks: blocks}, place{}, false)...)
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
			s := ways(fake, "C1")[way]
			beside.Run(b, 1, func() error { return s.Deliver(b.Context(), n) }, bare[way])
		})
	}
}
