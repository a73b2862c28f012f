package slack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/slack"
)

func TestConformanceOfBot(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		ForPeople: true,
		Accept: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"1503435956.000247","message":{"type":"message","ts":"1503435956.000247"}}`)
		},
		Imposters: []http.HandlerFunc{
			answerWith(200, ""), answerWith(200, "ok"), answerWith(200, "{}"), answerWith(200, `{"ok":false}`), answerWith(200, `{"ok":true}`), answerWith(200, `{"ok":true,"channel":"C1","ts":""}`),
			answerWith(200, "<html>please log in</html>"), answerWith(200, `{"ok":true,"ts":"1.`), answerWith(201, `{"ok":true,"channel":"C1","ts":"1.1"}`), answerWith(204, ""),
			answerWith(200, `{"ok":false,"error":"new_word","errors":[{"what":1}]}`),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			form, err := url.ParseQuery(string(body))
			if err != nil {
				return "", nil, err
			}
			var meta struct {
				Payload struct{ ID string } `json:"event_payload"`
			}
			if err := json.Unmarshal([]byte(form.Get("metadata")), &meta); err != nil {
				return "", nil, err
			}
			texts, err := quotedTexts([]byte(form.Get("blocks")))
			return meta.Payload.ID, texts, err
		},
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.RawQuery = nil, "" // an API has neither
		return newSlack(t, slack.Config{Token: registry.NewSecret("xoxb-" + o.Secret), Channel: "C1", APIURL: u.String()}, o)
	})
}

func TestConformanceOfWebhook(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		ForPeople: true,
		Accept:    answerWith(200, "ok"),
		Imposters: []http.HandlerFunc{
			answerWith(200, ""), answerWith(200, "OK"), answerWith(200, "ok\n"), answerWith(200, "{}"), answerWith(200, `{"ok":true}`), answerWith(200, "<html>please log in</html>"),
			answerWith(201, "ok"), answerWith(202, "ok"), answerWith(204, ""),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			var payload struct{ Blocks json.RawMessage }
			if err := json.Unmarshal(body, &payload); err != nil {
				return "", nil, err
			}
			texts, err := quotedTexts(payload.Blocks)
			return "", texts, err
		},
	}
	pipelinetest.TestHTTPSink(t, f, func(_ *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		return newSlack(t, slack.Config{WebhookURL: registry.NewSecret(rawURL)}, o)
	})
}

// answerWith answers every request with this status and body.
func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// quotedTexts returns what is quoted for each difference in blocks.
func quotedTexts(blocks []byte) ([]string, error) {
	var parsed []struct{ Elements []richText }
	if err := json.Unmarshal(blocks, &parsed); err != nil {
		return nil, err
	}
	if len(parsed) == 0 {
		return nil, errors.New("there are no blocks")
	}
	var texts []string
	for _, b := range parsed[1:] {
		if len(b.Elements) == 0 || !strings.Contains("➕➖", b.Elements[0].Elements[0].Text[:3]) {
			continue // the foot
		}
		text := ""
		for _, part := range b.Elements[1:] {
			for _, e := range part.Elements {
				text += e.Text
			}
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// richText is a part of a rich_text block.
type richText struct {
	Type, Text, URL string
	Style           struct{ Bold, Strike bool }
	Elements        []richText
}

func newSlack(t *testing.T, c slack.Config, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
	t.Helper()
	c.Allow, c.RootCAs = o.Allow, o.RootCAs
	s, err := slack.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
