package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// decodes reads what was sent in a format: the ID in the body, if it has one, and the texts.
type decodes func(body []byte) (id string, texts []string, err error)

func documented(body []byte) (string, []string, error) {
	var n pipeline.Notification
	err := json.Unmarshal(body, &n)
	var texts []string
	for _, d := range n.Diffs {
		texts = append(texts, d.Text)
	}
	return n.ID, texts, err
}

func v1(body []byte) (string, []string, error) {
	var b struct{ Diffs []struct{ Snippet string } }
	err := json.Unmarshal(body, &b)
	var texts []string
	for _, d := range b.Diffs {
		texts = append(texts, d.Snippet)
	}
	return "", texts, err
}

func structured(body []byte) (string, []string, error) {
	var e struct {
		ID   string
		Data json.RawMessage
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return "", nil, err
	}
	id, texts, err := documented(e.Data)
	if id != e.ID {
		err = fmt.Errorf("the event is %q, its data %q", e.ID, id)
	}
	return id, texts, err
}

func TestConformance(t *testing.T) {
	for name, tt := range map[string]struct {
		decode decodes
		c      webhook.Config
	}{
		"documented": {documented, webhook.Config{}},
		"v1":         {v1, webhook.Config{Format: webhook.FormatV1, Headers: map[string]registry.Secret{"X-Api-Key": registry.NewSecret("an API key")}}},
		"structured": {structured, webhook.Config{Format: webhook.FormatCloudEvents}},
		"binary":     {documented, webhook.Config{Format: webhook.FormatCloudEvents, Mode: webhook.ModeBinary}},
	} {
		t.Run(name, func(t *testing.T) {
			f := pipelinetest.HTTPSinkFeatures{
				Decode: func(h http.Header, body []byte) (string, []string, error) {
					id, texts, err := tt.decode(body)
					header := h.Get(standardwebhooks.HeaderWebhookID)
					if id != "" && id != header {
						t.Errorf("%s is %q, the body says %q", standardwebhooks.HeaderWebhookID, header, id)
					}
					return header, texts, err
				},
			}
			pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
				c := tt.c
				c.URL, c.Secret, c.Allow, c.RootCAs = registry.NewSecret(rawURL), registry.NewSecret(o.Secret), o.Allow, o.RootCAs
				w, err := webhook.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return w
			})
		})
	}
}
