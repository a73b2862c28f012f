package httpsource

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestFetcherContract(t *testing.T) {
	pipelinetest.TestFetcher(t, func(t *testing.T) pipelinetest.FetcherSite {
		var mu sync.Mutex
		var page string
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			body := page
			mu.Unlock()
			switch r.URL.Path {
			case "/page":
				etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body)))
				w.Header().Set("ETag", etag)
				if r.Header.Get("If-None-Match") == etag {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				fmt.Fprint(w, body)
			case "/redirect":
				http.Redirect(w, r, "/page", http.StatusFound)
			case "/hang":
				<-r.Context().Done()
			default:
				http.NotFound(w, r)
			}
		})
		f := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, MaxBody: 1000})
		t.Cleanup(func() { _ = f.Close() })
		return pipelinetest.FetcherSite{
			Fetcher: f, MaxBody: 1000, Missing: srv.URL + "/missing", Redirect: srv.URL + "/redirect", Hang: srv.URL + "/hang",
			Put: func(_ *testing.T, body string) string {
				mu.Lock()
				defer mu.Unlock()
				page = body
				return srv.URL + "/page"
			},
		}
	})
}
