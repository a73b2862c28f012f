package gotify_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/gotify"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, `{"id":25,"appid":5,"message":"x","title":"x","priority":2,"date":"2026-01-02T03:04:05Z"}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":"25"}`),
			chattest.Answer(200, `{"error":"Bad Request","errorCode":400}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(h http.Header, body []byte) (string, []string, error) {
			if h.Get("X-Gotify-Key") == "" {
				t.Error("there is no token")
			}
			m, err := read(body)
			if err != nil {
				return "", nil, err
			}
			plain(t, m)
			_, line, ok := strings.Cut("\n"+m.Message, "\n+ ")
			if !ok {
				t.Errorf("there is no difference in %.200q", m.Message)
			}
			line, _, _ = strings.Cut(line, "\n")
			return m.Extras.Ours.ID, []string{line[strings.LastIndex(line, ": ")+2:]}, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		c := gotify.Config{URL: registry.NewSecret(rawURL), Token: registry.NewSecret(o.Secret)}
		return chattest.Build(t, gotify.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// received is what Gotify reads of a request.
type received struct {
	Title, Message string
	Priority       int
	Extras         struct {
		Display struct {
			ContentType string `json:"contentType"`
		} `json:"client::display"`
		Notification struct {
			Click struct{ URL string }
		} `json:"client::notification"`
		Ours struct{ ID string } `json:"vokter::notification"`
	}
}

func read(body []byte) (received, error) {
	var m received
	err := json.Unmarshal(body, &m)
	return m, err
}

// plain fails the test unless apps show m as plain text that is not too long.
func plain(t *testing.T, m received) {
	t.Helper()
	if m.Extras.Display.ContentType != "text/plain" || len([]rune(m.Message)) > 16_000 || m.Message == "" || m.Title == "" || strings.Contains(m.Title, "\n") {
		t.Errorf("%q, %d bytes, the title %q", m.Extras.Display.ContentType, len(m.Message), m.Title)
	}
}
