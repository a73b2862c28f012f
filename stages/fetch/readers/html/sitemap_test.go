package html

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func gzipBytes(t *testing.T, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readSitemap(t *testing.T, body []byte) (flow.Links, error) {
	t.Helper()
	return Sitemap(t.Context(), pipeline.Raw{URL: "https://example.com/sitemap.xml", Body: body})
}

func TestSitemap(t *testing.T) {
	body := `<?xml version="1.0"?><!-- made --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc> https://example.com/a?x=1&amp;y=2 </loc><lastmod>2026-11-21</lastmod><image:image><image:loc>https://example.com/no</image:loc></image:image></url>
<url><lastmod>2026-11-21T10:15+01:00</lastmod><loc><![CDATA[https://example.com/b]]></loc></url><url><lastmod>yesterday</lastmod><loc>https://example.com/b#again</loc></url>
<url><loc>file:///etc/passwd</loc></url><url><loc>https://example.com/x.png</loc></url></urlset>`
	for name, b := range map[string][]byte{"plain": []byte(body), "gzip": gzipBytes(t, body)} {
		l, err := readSitemap(t, b)
		want, modified := "[https://example.com/a?x=1&y=2 https://example.com/b]", "[1795305600 1795252500]"
		if err != nil || fmt.Sprint(l.URLs) != want || fmt.Sprint(l.Modified) != modified || l.More || l.Index {
			t.Errorf("%s: got %+v, %v, want %s", name, l, err, want)
		}
	}
	l, err := readSitemap(t, []byte("<sitemapindex><sitemap><loc>https://example.com/1.xml.gz</loc></sitemap></sitemapindex>"))
	if err != nil || !l.Index || fmt.Sprint(l.URLs) != "[https://example.com/1.xml.gz]" {
		t.Errorf("index: got %+v, %v", l, err)
	}
	for name, b := range map[string][]byte{
		"text":    []byte("\ufeff\n https://example.com/a?x=1&y=2\r\n\nHTTPS://example.com/b\nhttps://example.com/" + strings.Repeat("long", 4000) + "\nhttps://example.com/b"),
		"gzipped": gzipBytes(t, "https://example.com/a?x=1&y=2\nhttps://example.com/b\n"),
	} {
		if l, err := readSitemap(t, b); err != nil || fmt.Sprint(l.URLs) != "[https://example.com/a?x=1&y=2 https://example.com/b]" || l.Modified != nil {
			t.Errorf("%s: got %+v, %v", name, l, err)
		}
	}
}

// The namespace of an element counts, and not the prefix that stands for it.
func TestSitemapNamespaces(t *testing.T) {
	const ns, image = "http://www.sitemaps.org/schemas/sitemap/0.9", "http://www.google.com/schemas/sitemap-image/1.1"
	for _, body := range []string{
		"<sm:urlset xmlns:sm='" + ns + "' xmlns:image='" + image + "'><sm:url><image:image><image:loc>https://example.com/no</image:loc></image:image><sm:loc>https://example.com/a</sm:loc></sm:url></sm:urlset>",
		"<sm:urlset xmlns:sm='" + ns + "' xmlns='" + image + "'><sm:url><image><loc>https://example.com/no</loc></image><sm:loc>https://example.com/a</sm:loc></sm:url></sm:urlset>",
		"<urlset xmlns='" + ns + "' xmlns:x='" + ns + "'><x:url><x:loc>https://example.com/a</x:loc><image xmlns='" + image + "'><loc>https://example.com/no</loc></image></x:url></urlset>",
		"<urlset xmlns='" + ns + "'><url xmlns=''><loc>https://example.com/a</loc></url><y:loc>https://example.com/no</y:loc></urlset>",
		"<sm:urlset><sm:url><sm:loc>https://example.com/a</sm:loc><loc>https://example.com/no</loc></sm:url></sm:urlset>",
	} {
		l, err := readSitemap(t, []byte(body))
		if err != nil || fmt.Sprint(l.URLs) != "[https://example.com/a]" {
			t.Errorf("%s: got %q, %v", body, l.URLs, err)
		}
	}
	l, err := readSitemap(t, []byte("<sm:sitemapindex xmlns:sm='"+ns+"'><sm:sitemap><sm:loc>https://example.com/1.xml</sm:loc></sm:sitemap></sm:sitemapindex>"))
	if err != nil || !l.Index || fmt.Sprint(l.URLs) != "[https://example.com/1.xml]" {
		t.Errorf("index: got %+v, %v", l, err)
	}
}

// TestLastModified: what no message can hold is no time.
func TestLastModified(t *testing.T) {
	for s, want := range map[string]int64{
		"1969-01-01": 0, "0000-01-01": 0, "9999-12-30": 253402214400, "9999-12-31": 0,
		"9999-12-31T23:59:59Z": 253402300799, "9999-12-31T23:59:59-01:00": 0, "9999-12-31T23:59-01:00": 0, "never": 0,
	} {
		if got := parseLastModified(s); got != want {
			t.Errorf("%s: got %d, want %d", s, got, want)
		}
	}
}

// TestSitemapsThatCannotBeRead holds what their errors say.
func TestSitemapsThatCannotBeRead(t *testing.T) {
	packed := gzipBytes(t, "<urlset>"+strings.Repeat("<url><loc>https://example.com/</loc></url>", 1000)+"</urlset>")
	packedLines := gzipBytes(t, strings.Repeat("https://example.com/\n", 1000))
	for name, of := range map[string]struct {
		body  []byte
		class string
		want  string
	}{
		"feed":             {[]byte("<rss><loc>https://example.com/</loc></rss>"), pipeline.FailUnreadable, "urlset or sitemapindex"},
		"text":             {[]byte("see https://example.com/"), pipeline.FailUnreadable, "or text with one URL a line"},
		"line":             {[]byte("https://example.com/\n\n<html>"), pipeline.FailUnreadable, "line 3 is no URL"},
		"cut lines":        {packedLines[:len(packedLines)-10], pipeline.FailUnreadable, "unexpected EOF"},
		"long lines":       {gzipBytes(t, "https://example.com/"+strings.Repeat("a", MaxSitemap)), pipeline.FailTooLarge, "larger than 50 MiB"},
		"no pages":         {[]byte("<urlset/>"), pipeline.FailEmpty, "lists no page"},
		"no sitemaps":      {[]byte("<sitemapindex></sitemapindex>"), pipeline.FailEmpty, "lists no page"},
		"pictures":         {[]byte("<urlset><url><loc>https://example.com/a.png</loc></url></urlset>"), pipeline.FailEmpty, "lists no page"},
		"empty":            {nil, pipeline.FailUnreadable, "urlset or sitemapindex"},
		"cut":              {packed[:len(packed)-10], pipeline.FailUnreadable, "it breaks off behind 1 URL: unexpected EOF"},
		"cut in a URL":     {[]byte("<urlset><url><loc>https://example.com/a</loc></url><url><loc>https://exam"), pipeline.FailUnreadable, "</urlset> is missing"},
		"cut behind a URL": {[]byte("<urlset><url><loc>https://example.com/a</loc></url>"), pipeline.FailUnreadable, "it breaks off behind 1 URL: </urlset> is missing"},
		"cut in its end":   {[]byte("<sitemapindex></sitemapindex"), pipeline.FailUnreadable, "it breaks off behind 0 URLs: </sitemapindex> is missing"},
		"blanks":           {gzipBytes(t, "<urlset>"+strings.Repeat(" ", MaxSitemap+1)), pipeline.FailTooLarge, "larger than 50 MiB"},
		"large text":       {[]byte("<urlset>" + strings.Repeat(" ", maxToken+1) + "</urlset>"), pipeline.FailUnreadable, "is larger than 16 MiB"},
		"magic":            {packed[:5], pipeline.FailUnreadable, "gzip header"},
		"bomb":             {gzipBytes(t, "<urlset>"+strings.Repeat("<!--"+strings.Repeat(" ", 1<<20)+"-->", MaxSitemap>>20)), pipeline.FailTooLarge, "larger than 50 MiB"},
	} {
		_, err := readSitemap(t, of.body)
		if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != of.class || !strings.Contains(e.Reason, of.want) {
			t.Errorf("%s: got %v, want %s and %q", name, err, of.class, of.want)
		}
	}
}

func TestSitemapsAreBounded(t *testing.T) {
	var many strings.Builder
	many.WriteString("<urlset>")
	for i := range flow.MaxSitemapLinks + 1 {
		fmt.Fprintf(&many, "<url><loc>https://example.com/%d</loc></url>", i)
	}
	l, err := readSitemap(t, []byte(many.String()))
	if err != nil || len(l.URLs) != flow.MaxSitemapLinks || !l.More {
		t.Errorf("of many: got %d, %v, %v", len(l.URLs), l.More, err)
	}
	l, err = readSitemap(t, []byte(strings.ReplaceAll(many.String(), "</loc>", "?"+strings.Repeat("a&amp;", 50)+"</loc>")))
	size := 0
	for _, url := range l.URLs {
		size += len(url) + 5*strings.Count(url, "&")
	}
	if err != nil || !l.More || size > flow.MaxSitemapLinksSize || size < flow.MaxSitemapLinksSize-1000 {
		t.Errorf("of long ones: got %d URLs of %d bytes, %v, %v", len(l.URLs), size, l.More, err)
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

func linksIn(t *testing.T, body string) flow.Links {
	t.Helper()
	l, err := Links(t.Context(), pipeline.Raw{URL: "http://example.com/a/b", ContentType: "text/html", Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLinks(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"relative and absolute, each once, without fragments", `<a href="c">c</a><a href="/d#x"></a><A HREF="/d#y"></A><a href=" https://Other.example:443 ">o</a>`,
			"http://example.com/a/c http://example.com/d https://other.example/"},
		{"the first base counts", `<base href="/base/"><base href="/other/"><a href="x">`, "http://example.com/base/x"},
		{"areas of a map", `<map><area href="/area"></map>`, "http://example.com/area"},
		{"nofollow of a link", `<a rel="noopener NoFollow" href="/a">a</a><a rel="next" href="/b">b</a>`, "http://example.com/b"},
		{"nofollow of the page", `<meta name="Robots" content="noindex, nofollow"><a href="/a">`, ""},
		{"no page", `<a href="mailto:a@example.com"></a><a href="javascript:x()"></a><a href="#top"></a><a href=""></a><a name="n"></a>` +
			`<a href="http://user:pw@example.com/"></a><a href="http://[::1"></a><a href="/photo.JPG"></a><a href="/a.b/c"></a>`, "http://example.com/a.b/c"},
		{"session IDs", `<a href="/x;jsessionid=1F?a=1"></a><a href="/y?PHPSESSID=abc&b=2&sid=3"></a><a href="/z?sid=9"></a><a href="/side?sidebar=1"></a>`,
			"http://example.com/x?a=1 http://example.com/y?b=2 http://example.com/z http://example.com/side?sidebar=1"},
		{"session IDs behind letters that are longer in the other case", `<a href="/%FFȺ%FF;JSessionID="></a>`, "http://example.com/%FF%C8%BA%FF"},
		{"no links in scripts and comments", `<script>"<a href='/s'>"</script><!-- <a href="/c"> --><a href="/ok">`, "http://example.com/ok"},
	} {
		if got := strings.Join(linksIn(t, c.body).URLs, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLinksAreBounded(t *testing.T) {
	var many, long strings.Builder
	for i := range 3 * flow.MaxLinks {
		fmt.Fprintf(&many, `<a href="/%d"></a>`, i)
		fmt.Fprintf(&long, `<a href="/%d%s"></a>`, i, strings.Repeat("x", 1000))
	}
	if l := linksIn(t, many.String()); len(l.URLs) != flow.MaxLinks || !l.More || l.URLs[flow.MaxLinks-1] != fmt.Sprintf("http://example.com/%d", flow.MaxLinks-1) {
		t.Errorf("%d links, more: %v", len(l.URLs), l.More)
	}
	l := linksIn(t, long.String())
	if n := len(strings.Join(l.URLs, "")); n > flow.MaxLinksSize || n < flow.MaxLinksSize-2000 || !l.More {
		t.Errorf("%d bytes of links, more: %v", n, l.More)
	}
}
