package httpsource

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestRedirectsAreEncoded follows redirects whose Location is written as no URL is, as browsers do.
func TestRedirectsAreEncoded(t *testing.T) {
	for location, want := range map[string]string{
		"/s?q=red lamp":           "/s?q=red%20lamp",
		"/s?q=grün&x='":           "/s?q=gr%C3%BCn&x=%27",
		"/s?q=\xfc":               "/s?q=%FC",
		"/a%2Fb c/ü":              "/a%2Fb%20c/%C3%BC",
		"/100%?x=100%":            "/100%25?x=100%",
		"/s?a[]={1|2}+%20#a b%":   "/s?a[]={1|2}+%20",
		`\s\t`:                    "/s/t",
		" /s ":                    "/s",
		"?q=a b":                  "/?q=a%20b",
		"//HOST/s?<q>":            "/s?%3Cq%3E",
		"http://HOST/s?q=\"a b\"": "/s?q=%22a%20b%22",
	} {
		var got string
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.RequestURI == "/" {
				w.Header()["Location"] = []string{strings.ReplaceAll(location, "HOST", r.Host)}
				w.WriteHeader(http.StatusFound)
				return
			}
			got = r.RequestURI
		})
		f := New(Config{Allow: loopback})
		var permitted string
		resp, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/", Redirect: func(_ context.Context, url string) error {
			permitted = url
			return nil
		}})
		if err != nil || got != want || permitted != srv.URL+want || resp.URL != srv.URL+want {
			t.Errorf("%q: requested %q, asked for %q, got %q, %v; want %q", location, got, permitted, resp.URL, err, want)
		}
	}
}
