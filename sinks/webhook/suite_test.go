package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
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
		opts   []webhook.Option
	}{
		"documented": {documented, nil},
		"v1":         {v1, []webhook.Option{webhook.Format(webhook.FormatV1), webhook.Headers(map[string]string{"X-Api-Key": "an API key"})}},
		"structured": {structured, []webhook.Option{webhook.Format(webhook.FormatCloudEvents)}},
		"binary":     {documented, []webhook.Option{webhook.Format(webhook.FormatCloudEvents), webhook.Mode(webhook.ModeBinary)}},
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
				w := webhook.New(rawURL, append(tt.opts, webhook.Secret(o.Secret), webhook.Allow(o.Allow...), webhook.RootCAs(o.RootCAs))...)
				return w
			})
		})
	}
}
