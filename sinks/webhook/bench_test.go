package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/beside"
)

// BenchmarkDeliver compares a webhook with a bare client of net/http that encodes the notification
// and posts as many bytes to the same receiver: x/bare is the ratio of the medians, taken in turns.
func BenchmarkDeliver(b *testing.B) {
	for name, c := range map[string]Config{
		"documented":  {Secret: registry.NewSecret("a secret of 24 characters")},
		"v1":          {Format: FormatV1},
		"cloudevents": {Format: FormatCloudEvents, Secret: registry.NewSecret("a secret of 24 characters"), Bearer: registry.NewSecret("token"), Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("k")}},
	} {
		b.Run(name, func(b *testing.B) {
			var last []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var v any
				body, err := io.ReadAll(r.Body)
				if err := errors.Join(err, json.Unmarshal(body, &v)); err != nil {
					b.Error(err)
				}
				last = body
				w.WriteHeader(http.StatusNoContent)
			}))
			defer server.Close()
			w := made(b, server.URL, c)
			n := sample()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			bare := func() error {
				if _, err := json.Marshal(n); err != nil {
					return err
				}
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL, bytes.NewReader(last))
				if err != nil {
					return err
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err
			}
			beside.Run(b, 1, func() error { return w.Deliver(b.Context(), n) }, bare)
		})
	}
}
