package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestSitemap(t *testing.T) {
	body := `<?xml version="1.0"?><!-- made --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc> https://example.com/a?x=1&amp;y=2 </loc><lastmod>2026-11-21</lastmod><image:image><image:loc>https://example.com/no</image:loc></image:image></url>
<url><loc><![CDATA[https://example.com/b]]></loc></url><url><loc>https://example.com/b#again</loc></url>
<url><loc>file:///etc/passwd</loc></url><url><loc>https://example.com/x.png</loc></url></urlset>`
	l, ok := Sitemap(t.Context(), pipeline.Raw{URL: "https://example.com/sitemap.xml", Body: []byte(body)})
	if want := "[https://example.com/a?x=1&y=2 https://example.com/b]"; !ok || fmt.Sprint(l.URLs) != want || l.More {
		t.Errorf("got %v, %v, want %s", l, ok, want)
	}
	for body, sitemap := range map[string]bool{
		"<sitemapindex><sitemap><loc>https://example.com/1.xml</loc></sitemap></sitemapindex>": true,
		"<urlset></urlset>": true, "<rss><loc>https://example.com/</loc></rss>": false, "": false, "text": false,
	} {
		l, ok := Sitemap(t.Context(), pipeline.Raw{URL: "https://example.com/", Body: []byte(body)})
		if ok != sitemap || len(l.URLs) != strings.Count(body, "1.xml") {
			t.Errorf("%s: got %v, %v", body, l.URLs, ok)
		}
	}
	many := "<urlset>"
	for i := range flow.MaxLinks + 1 {
		many += fmt.Sprintf("<url><loc>https://example.com/%d</loc></url>", i)
	}
	if l, _ := Sitemap(t.Context(), pipeline.Raw{URL: "https://example.com/", Body: []byte(many)}); len(l.URLs) != flow.MaxLinks || !l.More {
		t.Errorf("of many: got %d, %v", len(l.URLs), l.More)
	}
}

// TestOnlyFilesLinkToFiles has a page of the web link to a file.
func TestOnlyFilesLinkToFiles(t *testing.T) {
	body := []byte(`<a href="file:///srv/a.md">a</a> <a href="https://example.com/">b</a>`)
	for page, want := range map[string]string{
		"https://example.com/x": "[https://example.com/]", "file:///srv/": "[file:///srv/a.md https://example.com/]",
	} {
		if l, err := Links(t.Context(), pipeline.Raw{URL: page, Body: body}); err != nil || fmt.Sprint(l.URLs) != want {
			t.Errorf("%s: got %v, %v, want %s", page, l.URLs, err, want)
		}
	}
}
