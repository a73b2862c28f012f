package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

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
