package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/sinks/webhook"
)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Decode: func(h http.Header, body []byte) (string, []string, error) {
			var n pipeline.Notification
			if err := json.Unmarshal(body, &n); err != nil {
				return "", nil, err
			}
			var texts []string
			for _, d := range n.Diffs {
				texts = append(texts, d.Text)
			}
			if got := h.Get(standardwebhooks.HeaderWebhookID); got != n.ID {
				t.Errorf("%s is %q, the body says %q", standardwebhooks.HeaderWebhookID, got, n.ID)
			}
			return n.ID, texts, nil
		},
	}
	pipelinetest.TestHTTPSink(t, f, func(_ *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		return webhook.New(rawURL, webhook.Secret(o.Secret), webhook.Allow(o.Allow...), webhook.RootCAs(o.RootCAs))
	})
}
