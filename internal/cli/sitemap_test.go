package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWatchSaysWhatOfASitemapIsWatched has sitemaps of pages on their host and on another one.
func TestWatchSaysWhatOfASitemapIsWatched(t *testing.T) {
	for urls, want := range map[string]string{
		"X/a":                      "read a sitemap of 1 page; 1 of them is watched, and its first text is a baseline",
		"X/a X/b":                  "read a sitemap of 2 pages; 2 of them are watched, and their first texts are baselines",
		"X/a X/b https://h.test/c": "read a sitemap of 3 pages; 2 of them are watched, and their first texts are baselines: the others are not of its host",
		"https://h.test/c":         "read a sitemap of 1 page; no page is watched: none of the URLs that the sitemap lists (1) may be watched: they must be of its host",
	} {
		t.Run(urls, func(t *testing.T) {
			t.Parallel() // hosts are asked once a second
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/robots.txt":
					http.NotFound(rw, r)
				case "/sitemap.xml":
					fmt.Fprint(rw, "<urlset>")
					for url := range strings.FieldsSeq(strings.ReplaceAll(urls, "X", srv.URL)) {
						fmt.Fprintf(rw, "<url><loc>%s</loc></url>", url)
					}
					fmt.Fprint(rw, "</urlset>")
				default:
					fmt.Fprintf(rw, "<p>This is %s", r.URL.Path)
				}
			}))
			defer srv.Close()
			if r := runCLI(t, "watch", "--allow", "127.0.0.0/8", "--checks", "1", "--every", "0s", "--sitemap", srv.URL+"/sitemap.xml", "zeus"); r.code != 0 || !strings.Contains(r.stderr, want) {
				t.Errorf("got %+v, want %s", r, want)
			}
		})
	}
}
