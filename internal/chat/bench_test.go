package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/chat/chattest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/sinks/telegram"
)

// kinds are the sinks, and what their receivers do with a message: they look at it as the
// real ones must, and answer in their way. heard is what a client finds in the answer.
var kinds = []struct {
	name  string
	build func(rawURL string) (pipeline.Sink, error)
	take  func(m map[string]any) (answer any)
	heard func(answer []byte) bool
}{
	{"discord", func(rawURL string) (pipeline.Sink, error) {
		return discord.Config{WebhookURL: registry.NewSecret(rawURL)}.Build(discord.Allow(chattest.Loopback))
	}, func(m map[string]any) any {
		m["id"] = "1180000000000000000" // the answer is the message
		return m
	}, func(answer []byte) bool {
		var m struct{ ID string }
		return json.Unmarshal(answer, &m) == nil && m.ID != ""
	}},
	{"mattermost", func(rawURL string) (pipeline.Sink, error) {
		return mattermost.Config{WebhookURL: registry.NewSecret(rawURL)}.Build(mattermost.Allow(chattest.Loopback))
	}, func(m map[string]any) any {
		text, _ := m["text"].(string)
		words := strings.FieldsFunc(text, func(r rune) bool {
			return !strings.ContainsRune(":.-_@", r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
		})
		if utf8.RuneCountInString(text) > 16383 || slices.Contains(words, "@channel") {
			return "refused"
		}
		return "ok"
	}, func(answer []byte) bool { return string(answer) == "ok" }},
	{"teams", func(rawURL string) (pipeline.Sink, error) {
		return teams.Config{WebhookURL: registry.NewSecret(rawURL)}.Build(teams.Allow(chattest.Loopback))
	}, func(map[string]any) any { return "" }, func(answer []byte) bool { return len(answer) == 0 }},
	{"telegram", func(rawURL string) (pipeline.Sink, error) {
		c := telegram.Config{Token: registry.NewSecret("1:a"), ChatID: "1", APIURL: rawURL}
		return c.Build(telegram.Allow(chattest.Loopback))
	}, func(m map[string]any) any {
		text, _ := m["text"].(string)
		if len(utf16.Encode([]rune(text))) > 4096 {
			return "refused"
		}
		m["message_id"] = 1
		return map[string]any{"ok": true, "result": m}
	}, func(answer []byte) bool {
		var m struct {
			OK     bool
			Result struct {
				ID int64 `json:"message_id"`
			}
		}
		return json.Unmarshal(answer, &m) == nil && m.OK && m.Result.ID != 0
	}},
}

// BenchmarkDeliver compares each sink with a bare client of net/http that posts the same,
// laid out before, to the same receiver: x/bare is the ratio of the medians, taken in turns.
func BenchmarkDeliver(b *testing.B) {
	n := chattest.Notification()
	n.Diffs = n.Diffs[:3]
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			var path string
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				var m map[string]any
				if err := errors.Join(err, json.Unmarshal(got, &m)); err != nil {
					b.Error(err)
				}
				if body == nil {
					path, body = r.RequestURI, got
				}
				switch answer := kind.take(m).(type) {
				case string:
					_, err = io.WriteString(w, answer)
				default:
					err = json.NewEncoder(w).Encode(answer)
				}
				if err != nil {
					b.Error(err)
				}
			}))
			defer server.Close()
			sink, err := kind.build(server.URL)
			if err != nil {
				b.Fatal(err)
			}
			deliver := func() error { return sink.Deliver(b.Context(), n) }
			timed(b, deliver) // tells the path and the body
			post := func() error {
				resp, err := http.Post(server.URL+path, "application/json", bytes.NewReader(body))
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				answer, err := io.ReadAll(resp.Body)
				if err == nil && !kind.heard(answer) {
					err = errors.New("refused")
				}
				return err
			}
			var ours, theirs []time.Duration
			for b.Loop() {
				ours = append(ours, timed(b, deliver))
				theirs = append(theirs, timed(b, post))
			}
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x/bare")
			b.ReportMetric(float64(time.Second)/float64(median(ours)), "deliveries/s")
		})
	}
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}
