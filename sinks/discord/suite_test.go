package discord_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, `{"id":"1180000000000000000","type":0,"content":"x","channel_id":"1"}`)

func newSink(t *testing.T, rawURL string, how ...registry.Connection) pipeline.Sink {
	t.Helper()
	return chattest.Build(t, discord.New, discord.Config{WebhookURL: registry.NewSecret(rawURL)}, how...)
}

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":""}`),
			chattest.Answer(200, `{"id":1}`), chattest.Answer(200, "[]"), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m, err := read(body)
			if err != nil {
				return "", nil, err
			}
			var texts []string
			for _, e := range m.Embeds {
				_, quotes, links := chattest.Read(t, e.Description)
				if len(links) > 0 || linked(e.Description) || linked(e.Title) || linked(m.Content) {
					t.Errorf("there is a link in %s", body)
				}
				texts = append(texts, quotes...)
			}
			return "", texts, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		return newSink(t, rawURL, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// received is what Discord reads of a message.
type received struct {
	Content string
	Embeds  []struct {
		Title, URL, Description string
	}
	Mentions *struct{ Parse *[]string } `json:"allowed_mentions"`
}

func read(body []byte) (received, error) {
	var m received
	err := json.Unmarshal(body, &m)
	return m, err
}
