package ntfy_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, `{"id":"sPs71M8A2T","time":1767323045,"expires":1767366245,"event":"message","topic":"pages","message":"x"}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":1}`),
			chattest.Answer(200, `{"code":40001,"http":400,"error":"x"}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m, err := read(body)
			if err != nil {
				return "", nil, err
			}
			return "", []string{text(t, m)}, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		if strings.HasSuffix(rawURL, "/") {
			rawURL += "pages"
		}
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = nil // the token logs in
		return chattest.Build(t, ntfy.New, ntfy.Config{URL: registry.NewSecret(u.String()), Token: registry.NewSecret(o.Secret)}, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// received is what ntfy reads of a request.
type received struct {
	Topic, Title, Message, Click string
	Tags                         []string
	Priority                     int
}

func read(body []byte) (received, error) {
	var m received
	err := json.Unmarshal(body, &m)
	return m, err
}

// text returns the text of the only difference in m. It fails the test where ntfy would
// refuse m, or make it a file.
func text(t *testing.T, m received) string {
	t.Helper()
	bounded(t, m)
	_, line, ok := strings.Cut("\n"+m.Message, "\n+ ")
	if !ok {
		t.Errorf("there is no difference in %.200q", m.Message)
	}
	line, _, _ = strings.Cut(line, "\n")
	return line[strings.LastIndex(line, ": ")+2:]
}

// bounded fails the test unless ntfy takes m as a message.
func bounded(t *testing.T, m received) {
	t.Helper()
	if len(m.Message) > 4096 || m.Message == "" || m.Title == "" || strings.Contains(m.Title, "\n") {
		t.Errorf("%d bytes, the title %q", len(m.Message), m.Title)
	}
}
