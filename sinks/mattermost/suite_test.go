package mattermost_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark/extension"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, "ok")

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "<html>ok</html>"), chattest.Answer(200, `{"id":"x"}`),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m, err := read(body)
			if err != nil {
				return "", nil, err
			}
			quotes, links := shown(t, m.Text)
			if len(links) > 1 || len(links) == 1 && links[0] != "https://example.com/" {
				t.Errorf("there are links to %q in %s", links, body)
			}
			return m.Props["vokter_id"], quotes, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		c := mattermost.Config{WebhookURL: registry.NewSecret(rawURL)}
		return chattest.Build(t, mattermost.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// received is what Mattermost reads of a request.
type received struct {
	Text, Channel, Username string
	Props                   map[string]string
}

func read(body []byte) (received, error) {
	var m received
	err := json.Unmarshal(body, &m)
	return m, err
}

// shown returns the quotes and links of a post. It fails the test where Mattermost would
// see a mention, or an emoji.
func shown(t *testing.T, post string) (quotes, links []string) {
	t.Helper()
	if strings.Contains(post, "<!") || strings.Contains(post, "<@") || len([]rune(post)) > 16383 {
		t.Errorf("there is a mention in the form of Slack, or too much text in %.200q", post)
	}
	all, quotes, links := chattest.Read(t, post, extension.Linkify)
	// This is how Mattermost splits the text of a post, in search of mentions.
	for _, word := range strings.FieldsFunc(all, func(r rune) bool {
		return !strings.ContainsRune(":.-_@", r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}) {
		word = strings.TrimLeft(word, ":.-_")
		if len(word) > 1 && (word[0] == '@' || strings.Count(word, ":") > 1 && strings.ContainsFunc(word, unicode.IsLetter)) {
			t.Errorf("%q is a mention or an emoji in %.200q", word, all)
		}
	}
	return quotes, links
}
