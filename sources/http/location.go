package httpsource

import (
	"net/http"

	"github.com/vokter/vokter/pipeline/pageurl"
)

// locationTransport is an http.RoundTripper that encodes Location: http.Client refuses one with a lone %,
// and would send a blank of a query as it is.
type locationTransport struct{ base http.RoundTripper }

// RoundTrip sends r.
func (t *locationTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if to := resp.Header.Get("Location"); to != "" {
		resp.Header.Set("Location", pageurl.Encode(to))
	}
	return resp, nil
}

// CloseIdleConnections closes idle connections.
func (t *locationTransport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

var _ http.RoundTripper = (*locationTransport)(nil)
