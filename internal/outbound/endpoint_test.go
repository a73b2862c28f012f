package outbound_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
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

func TestInsist(t *testing.T) {
	refused, failed := failure.Refused(errors.New("refused")), errors.New("failed")
	for name, tt := range map[string]struct {
		rich, plain, want error
		sent, told        int
	}{
		"taken":               {nil, nil, nil, 1, 0},
		"failed":              {failed, nil, failed, 1, 0},
		"layout refused":      {refused, nil, nil, 2, 1},
		"both refused":        {refused, refused, refused, 2, 0},
		"refused, then fails": {refused, failed, failed, 2, 0},
	} {
		a := &chattest.Attempt{}
		var sent []string
		send := func(_ context.Context, body []byte) error {
			sent = append(sent, string(body))
			if string(body) == "rich" {
				return tt.rich
			}
			return tt.plain
		}
		err := outbound.Insist(pipeline.WithAttempt(t.Context(), a), send, []byte("rich"), func() []byte { return []byte("plain") })
		if !errors.Is(err, tt.want) || len(sent) != tt.sent || len(a.Reasons) != tt.told {
			t.Errorf("%s: sent %q, told %q, got %v, want %v", name, sent, a.Reasons, err, tt.want)
		}
	}
}

func TestBecause(t *testing.T) {
	u, err := url.Parse("https://example.com/hooks/0123456789abcdef?sig=SECRET")
	if err != nil {
		t.Fatal(err)
	}
	e := outbound.NewEndpoint(u, outbound.Sender{}, "TOKEN1")
	for reason, want := range map[string]string{
		"":                       "failed",
		"no\r\n\x1b[31m hook":    "failed: no [31m hook",
		"0123456789abcdef":       "failed: ***",
		"SE\x00CRET of TOKEN1":   "failed: *** of ***",
		strings.Repeat("x", 9e5): "failed: " + strings.Repeat("x", 200) + " ...",
	} {
		err := e.Because(failure.Gone(errors.New("failed")), reason)
		if class, _ := failure.ClassOf(err); err.Error() != want || class != failure.ClassGone {
			t.Errorf("%.20q: got %v of class %d, want %s", reason, err, class, want)
		}
	}
}

// sinkKinds are the sinks, with what their receivers answer.
var sinkKinds = []struct {
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
	for _, kind := range sinkKinds {
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
