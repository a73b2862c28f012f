package router_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	httpsource "github.com/vokter/vokter/sources/http"
)

// tokenSite answers each token with a text of its own, always under the same ETag, as careless
// websites do. Requests have "TOKEN if-none-match".
func tokenSite(t *testing.T) (srv *httptest.Server, requests chan string) {
	requests = make(chan string, 100)
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		requests <- token + " " + r.Header.Get("If-None-Match")
		w.Header().Set("ETag", `"same"`)
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write([]byte("a page for " + token))
	}))
	t.Cleanup(srv.Close)
	return srv, requests
}

func withToken(srv *httptest.Server, token string) map[string]httpsource.Access {
	return map[string]httpsource.Access{"shop": {Hosts: []string{srv.URL}, Bearer: registry.NewSecret(token)}}
}

// TestChangedAccess: after a restart with other credentials the page is read again in full, and so
// the client is notified of what it holds for them.
func TestChangedAccess(t *testing.T) {
	srv, requests := tokenSite(t)
	m := newMailbox()
	cfg := vokter.Config{
		Dir: t.TempDir(), Checks: 1, Sinks: map[string]pipeline.Sink{"box": m},
		Fetch:         vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: srv.URL + "/", Keywords: []string{"two"}, Sinks: []string{"box"}}},
	}
	for _, c := range []struct{ token, want string }{{"one", "one "}, {"one", `one "same"`}, {"two", "two "}, {"two", `two "same"`}} {
		cfg.Access = withToken(srv, c.token)
		runToEnd(t, cfg)
		if got := <-requests; got != c.want {
			t.Errorf("with token %s the request was %q, want %q", c.token, got, c.want)
		}
	}
	if got := m.take(); len(got) != 1 || len(got[0].Diffs) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestReloadedAccess: a reload changes the credentials of a running Router, and its lines name them
// without showing secrets.
func TestReloadedAccess(t *testing.T) {
	srv, requests := tokenSite(t)
	every := 10 * time.Millisecond
	cfg := vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Every: &every,
		Fetch:         vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: srv.URL + "/", Keywords: []string{"two"}, Sinks: []string{"box"}}},
		Access:        withToken(srv, "one"),
	}
	r, stop := startRouter(t, cfg)
	defer stop()
	if got := <-requests; got != "one " {
		t.Fatalf("the first request was %q", got)
	}
	cfg.Access = withToken(srv, "two")
	lines, err := r.Reload(t.Context(), cfg)
	if err != nil || len(lines) != 1 || lines[0] != "access changed: shop" {
		t.Fatalf("lines %q, %v", lines, err)
	}
	for got := range requests {
		if strings.HasPrefix(got, "two") {
			if got != "two " {
				t.Errorf("the first request with the new token was %q", got)
			}
			return
		}
	}
}
