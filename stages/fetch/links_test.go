package fetch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vokter/vokter/pipeline"
)

// TestForbiddenLinks: links that must not be followed are left out, of a page as of a sitemap.
func TestForbiddenLinks(t *testing.T) {
	const sitemap = `<urlset><url><loc>https://shop.example.com/a</loc><lastmod>2026-01-01</lastmod></url>` +
		`<url><loc>https://intranet.example.com/b</loc><lastmod>2026-01-02</lastmod></url><url><loc>https://shop.example.com/c</loc><lastmod>2026-01-03</lastmod></url></urlset>`
	for name, c := range map[string]struct {
		body, kind string
		view       pipeline.View
		modified   int
	}{
		"a page":    {`<a href="/a">a</a> <a href="https://intranet.example.com/b">b</a> <a href="/c">c</a>`, "text/html", pipeline.View{}, 0},
		"a sitemap": {sitemap, "application/xml", pipeline.View{Sitemap: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := startStage(t, Config{MayLead: func(page, other string) bool {
					return page == "https://shop.example.com/" && !strings.HasPrefix(other, "https://intranet.")
				}}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
					resp, err := newResponse(c.body, "Content-Type", c.kind)
					resp.URL = r.URL
					return resp, err
				})
				r := newRequest("https://shop.example.com/", 1)
				r.Links, r.Documents[0].View = true, c.view
				b.sendRequests(t, r)
				synctest.Wait()
				l := b.out.takeOutcomes()[r.Page].Links
				if l == nil || fmt.Sprint(l.URLs) != "[https://shop.example.com/a https://shop.example.com/c]" || len(l.Modified) != c.modified || c.modified > 0 && l.Modified[1] != 1767484800 {
					t.Errorf("got %+v", l)
				}
			})
		})
	}
}
