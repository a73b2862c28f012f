package outbound_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/sinks/gotify"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/sinks/telegram"
	"github.com/vokter/vokter/test/beside"
	"github.com/vokter/vokter/test/chattest"
)

// kinds are the sinks, with what their receivers answer.
var kinds = []struct {
	name, accept string
	build        func(rawURL string) (pipeline.Sink, error)
}{
	{"discord", `{"id":"1180000000000000000"}`, func(rawURL string) (pipeline.Sink, error) {
		return discord.New(discord.Config{WebhookURL: registry.NewSecret(rawURL), Connection: chattest.Local})
	}},
	{"gotify", `{"id":25}`, func(rawURL string) (pipeline.Sink, error) {
		return gotify.New(gotify.Config{URL: registry.NewSecret(rawURL), Token: registry.NewSecret("t"), Connection: chattest.Local})
	}},
	{"matrix", `{"event_id":"$1"}`, func(rawURL string) (pipeline.Sink, error) {
		return matrix.New(matrix.Config{Homeserver: registry.NewSecret(rawURL), Room: "!r:example.org", Token: registry.NewSecret("t"), Connection: chattest.Local})
	}},
	{"mattermost", "ok", func(rawURL string) (pipeline.Sink, error) {
		return mattermost.New(mattermost.Config{WebhookURL: registry.NewSecret(rawURL), Connection: chattest.Local})
	}},
	{"ntfy", `{"id":"1"}`, func(rawURL string) (pipeline.Sink, error) {
		return ntfy.New(ntfy.Config{URL: registry.NewSecret(rawURL + "/topic"), Connection: chattest.Local})
	}},
	{"teams", "", func(rawURL string) (pipeline.Sink, error) {
		return teams.New(teams.Config{WebhookURL: registry.NewSecret(rawURL), Connection: chattest.Local})
	}},
	{"telegram", `{"ok":true,"result":{"message_id":1}}`, func(rawURL string) (pipeline.Sink, error) {
		return telegram.New(telegram.Config{Token: registry.NewSecret("1:a"), ChatID: "1", APIURL: rawURL, Connection: chattest.Local})
	}},
}

// BenchmarkDeliver compares each sink with a bare client of net/http that sends the same,
// laid out before, to the same receiver, which decodes it: x/bare is the ratio of the
// medians, taken in turns.
func BenchmarkDeliver(b *testing.B) {
	n := chattest.Notification()
	n.Diffs = n.Diffs[:3]
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			var first *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				var m map[string]any
				if err := errors.Join(err, json.Unmarshal(got, &m)); err != nil {
					b.Error(err)
				}
				if first == nil {
					first, body = r, got
				}
				_, _ = io.WriteString(w, kind.accept)
			}))
			defer server.Close()
			sink, err := kind.build(server.URL)
			if err != nil {
				b.Fatal(err)
			}
			deliver := func() error { return sink.Deliver(b.Context(), n) }
			if err := deliver(); err != nil { // tells the request
				b.Fatal(err)
			}
			send := func() error {
				req, err := http.NewRequestWithContext(b.Context(), first.Method, server.URL+first.RequestURI, bytes.NewReader(body))
				if err != nil {
					return err
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if answer, err := io.ReadAll(resp.Body); err != nil || string(answer) != kind.accept {
					return fmt.Errorf("got %q, %w", answer, err)
				}
				return nil
			}
			beside.Run(b, 1, deliver, send)
		})
	}
}
