package html

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
)

func readHTML(t *testing.T, page string, view pipeline.View) (pipeline.Text, error) {
	t.Helper()
	return New().Read(t.Context(), pipeline.Raw{ContentType: "text/html", Body: []byte(page)}, view)
}

// showMarks writes marks so that they can be read.
var showMarks = strings.NewReplacer("\n", "|", "\x02", "<", "\x03", ">")

// parsingView is a view that selects nothing in particular, so that the page is parsed.
var parsingView = pipeline.View{Remove: []pipeline.Selector{{CSS: ".no-such-class"}}}

func TestRead(t *testing.T) {
	for _, tc := range []struct{ name, page, want string }{
		{"nothing", "", ""},
		{"text", "hello", "hello|"},
		{"blocks", "<div>one</div><div>two</div>three<p>four", "one|two|three|four|"},
		{"inline", "a<b>b</b> <i> c</i>\n\td<a> </a>e", "ab c d e|"},
		{"breaks", "a<br>b<br/>c</br>d<hr>e<wbr>f", "a|b|c|d|ef|"},
		{"title", "<title> The\ntitle &amp; more </title><h1>Head</h1>", "The title & more|Head|"},
		{"two titles", "<title>A</title><p>x<title>B</title>", "A|x|"},
		{"a late title", "<p>x</p><title>A</title>", "A|x|"},
		{"a title in a picture", "<svg><title>circle</title></svg>x", "x|"},
		{"white space", "a&nbsp;&nbsp;b\u2003c\u3000d\u2028e", "a b c d e|"},
		{"characters to drop", "so\u00adft ze\u200bro \ufeffbom c\x01d\x02e\x03f\x7fg\u0085h", "soft zero bom cdefg h|"},
		{"NUL", "a\x00b", "ab|"},
		{"invalid", "caf\xe9 &#xD800;", "caf\ufffd \ufffd|"},
		{"entities", "&lt;p&gt; &copy &eacute; &#8364; &amp;lt;", "<p> © é € &lt;|"},
		{"skipped", "a<script>x<b></script>b<style>p{}</style>c<noscript><p>x</noscript>d<template><p>x</template>e" +
			"<iframe>x</iframe>f<svg><path>x</path></svg>g<math><annotation>x</annotation></math>h<object><p>x</object>i<canvas>x</canvas>j<textarea>x</textarea>k", "abcde f g h i j k|"},
		{"drawings", "a<svg viewBox='0 0 9 9'>no<title>no</title><defs><text>no</text></defs><g><text x=1>Gate<tspan>4</tspan></text></g>" +
			"<g display=none><text>no</text></g><foreignObject><p>in</p></foreignObject></svg>b", "a Gate 4|in|b|"},
		{"formulas", "E = <math><mfrac><mn>1</mn><mn>2</mn></mfrac><mo>&times;</mo><mi>m</mi><annotation>no</annotation></math>.", "E = 1 2 × m .|"},
		{"buttons", "a<input type=submit value='Add to cart'><input type=RESET value=Reset>b<input type=text value=no><input value=no type=hidden><input type=button hidden value=no>c", "a Add to cart Reset b c|"},
		{"shadow roots", "<my-price>12 <template shadowrootmode=open><b>EUR</b></template></my-price><p><template shadowrootmode=Closed><p>a<p>b</template>c<template shadowrootmode=no>x</template>", "12 EUR|a|b|c|"},
		{"set apart", "<a>Guide des prénoms</a><button>Open</button>x<img src=y>y<input hidden>z<input>1<select><option>2</select>3<svg/>4<b>w</b>ord", "Guide des prénoms Open x yz 1|2|3 4word|"},
		{"links side by side", "<a href=/p>payments</a><a href=/b>bergen</a><a href=/1>1</a><a href=/2>2</a>, <a href=/x>x</a><i>y</i><p><a href=/z>z</a>s", "payments bergen 1 2, xy|zs|"},
		{"elements side by side", "<span>Publish</span><span>Plan it</span><em><i>new</i></em><span>Price</span><span>10</span><b>GDPR</b><x-y><u>Law</u></x-y>", "Publish Plan itnew Price 10 GDPR Law|"},
		{"letters side by side", "<b>H</b>ello <b>T</b><i>ERMS</i> <i>TER</i><i>MS</i> <b>O</b><b>K</b> <b>5</b><i>k</i> <i>5</i><b>K</b> <i>CO</i><sub>2</sub> <i>He</i><i>llo</i> <i>a</i><i hidden>x</i>B <b>$</b><b>5</b>",
			"Hello TERMS TERMS OK 5k 5K CO2 Hello aB $5|"},
		{"comments", "a<!-- x -->b<!doctype x><?php x ?>c<!x>d", "abcd|"},
		{"hidden", "a<span hidden>x<b>y</b></span>b<i style='color:red; DISPLAY : none'>x</i>c<u style=visibility:hidden!important>x</u>d", "abcd|"},
		{"not hidden", "<p style='display:none;display:block'>a</p><p style='x-display:none'>b</p><p class=hidden>c<p style='--display:none'>d", "a|b|c|d|"},
		{"hidden nested", "<div hidden>a<div>b</div>c</div>d", "d|"},
		{"a hidden page", "<body hidden style='display:none'>a", "a|"},
		{"hole p", "<p hidden>a<p>b<p>c", "b|c|"},
		{"hole p by block", "<p hidden>a<div>b</div>", "b|"},
		{"hole p by parent", "<div><p hidden>a</div>b", "b|"},
		{"hole li", "<ul><li hidden>a<li>b</ul>c", "<b|>c|"},
		{"hole td", "<table><tr><td hidden>a<td>b<tr hidden><td>c<tr><td>d</table>", "<b|><d|>"},
		{"hole dd", "<dl><dt hidden>a<dd>b<dt>c<dd hidden>d</dl>e", "<b|><c|>e|"},
		{"hole option", "<select><option hidden>a<option>b</select>c", "b|c|"},
		{"hole th", "<table><tr><th hidden>a<th>b</table>", "<b|>"},
		{"list", "<ul><li>a<li>b<ul><li>c</ul>d<li></li></ul>e", "<a|><b|><c|>d|e|"},
		{"item with blocks", "<li><p>a</p><div>b<br>c</div></li>d", "<a|b|c|>d|"},
		{"item in a div", "<ul><li><div>a<li>b</ul>", "<a|><b|>"},
		{"table", "<table><caption>t</caption><thead><tr><th>a<th>b<tbody><tr><td>c</td><td>d</td></tr></table>", "t|<a|b|><c|d|>"},
		{"table in a table", "<table><tr><td>a<table><tr><td>b</table>c<td>d</table>", "<a|<b|>c|d|>"},
		{"cells without a row", "<table><td>a<td>b<tr><td>c</table>", "<a|b|><c|>"},
		{"a row without a table", "a<tr><td>b<td>c", "abc|"},
		{"definitions", "<dl><dt>a<dd>b<dd>c<dt>d<dd><p>e</p>f</dl><dl><dd>g<dt>h</dl>i", "<a|b|c|><d|e|f|><g|><h|>i|"},
		{"groups of definitions", "<dl><div><dt>a<dt>b<dd>c</div><div><dt>d<dd>e<ul><li>f</ul></div></dl>", "<a|><b|c|><d|e|<f|>>"},
		{"pre", "<pre>\na  b\n\n c\r\nd</pre>e", "a b|c|d|e|"},
		{"pre and inline", "<pre>a <b>b\nc</b> d</pre>", "a b|c d|"},
		{"xmp", "<xmp><b>a\nb</xmp>c", "<b>a|b|c|"},
		{"plaintext", "a<plaintext>b</p>\nc", "a|b</p>|c|"},
		{"form", "<form>a<div>b</form>c</div>d<form>e</form>f", "a|bc|d|e|f|"},
		{"stray end tags", "a</div></td></li></b></title>b</p>c", "ab|c|"},
		{"misnested", "<b>a<i>b</b>c</i><a>d<p>e</a>f", "abcd|ef|"},
		{"after the body", "<body>a</body>b</html>c", "abc|"},
		{"pictures end", "<svg><g>x<p>a</p>b", "a|b|"},
		{"a picture's own elements", "<svg><style>x</style><title>x</svg>a<svg/>b<svg><circle/>x</svg>c", "a b c|"},
		{"unclosed comment", "a<!-- b <p>c", "a|"},
		{"unclosed tag", "a<p class='b <p>c", "a|"},
		{"unclosed script", "a<script>b <p>c", "a|"},
		{"cloudflare span", `<a href="/cdn-cgi/l/email-protection" class="__cf_email__" data-cfemail="5c35323a331c39243d312c3039723f3331">[email&#160;protected]</a>!`, "info@example.com!|"},
		{"cloudflare link", `<a href="/cdn-cgi/l/email-protection#5c35323a331c39243d312c3039723f3331">[email&#160;protected]</a>`, "info@example.com|"},
		{"cloudflare link with words", `<a href="/cdn-cgi/l/email-protection#5c35323a331c39243d312c3039723f3331">write to us</a>`, "write to us|"},
		{"cloudflare nonsense", `<span data-cfemail="zz">a</span><span data-cfemail="00">b</span><span data-cfemail="0041">c</span>`, "abc|"},
	} {
		for path, view := range map[string]pipeline.View{"scanned": {}, "parsed": parsingView} {
			got, err := readHTML(t, tc.page, view)
			if err != nil {
				t.Errorf("%s, %s: %v", tc.name, path, err)
			}
			if s := showMarks.Replace(got.Content); s != tc.want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", tc.name, path, s, tc.want)
			}
		}
	}
}

func TestTitleAndLanguage(t *testing.T) {
	for path, view := range map[string]pipeline.View{"scanned": {}, "parsed": parsingView} {
		got, err := readHTML(t, "<!doctype html><html lang=' de-CH '><title> Über\n uns </title>x", view)
		if err != nil || got.Title != "Über uns" || got.Language != "de-CH" {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
		got, _ = readHTML(t, "<html><html lang=fr_CA lang=en>x", view)
		if got.Language != "fr-CA" {
			t.Errorf("%s: language: got %q, want fr-CA", path, got.Language)
		}
		got, _ = readHTML(t, "<html lang='<script>'>x", view)
		if got.Language != "" {
			t.Errorf("%s: language: got %q, want none", path, got.Language)
		}
	}
	got, _ := New().Read(t.Context(), pipeline.Raw{ContentLanguage: "sv", Body: []byte("x")}, pipeline.View{})
	if got.Language != "sv" {
		t.Errorf("header: got %q, want sv", got.Language)
	}
	got, _ = New().Read(t.Context(), pipeline.Raw{ContentLanguage: "en, sv", Body: []byte("x")}, pipeline.View{})
	if got.Language != "" {
		t.Errorf("header: got %q, want none", got.Language)
	}
}

// TestEndsWithin: a page that ends within what hides its text says so.
func TestEndsWithin(t *testing.T) {
	for body, want := range map[string]string{
		"<p>a</p>\n<!-- b <p>c":         "the page ends within a comment, whose text is not shown, in line 2",
		"<p>a</p><!-- b -- ><p>c\n":     "the page ends within a comment, whose text is not shown, in line 2",
		"<p>a</p><textarea>b<p>c":       "the page ends within <textarea>, whose text is not shown, in line 1",
		"<p>a</p><script>b\n\n</scrip>": "the page ends within <script>, whose text is not shown, in line 3",
		`<p>a</p><a href="b>c</a><p>d`:  "the page ends within a tag, whose text is not shown, in line 1",
		"<p>a</p><!-- b --><div><p>c":   "",
		"<p>a</p><!-- b --!><textarea>": "",
		"<p>a</p><script>b</script>":    "",
		"<p>a</p><!doctype b><? c":      "",
		"<!-->a<!--->b <":               "",
		"<xmp>a":                        "",
	} {
		for path, view := range map[string]pipeline.View{"scanned": {}, "parsed": parsingView} {
			text, err := New().Read(t.Context(), pipeline.Raw{ContentType: "text/html", Body: []byte(body)}, view)
			if got := strings.Join(text.Passed, "; "); err != nil || got != want {
				t.Errorf("%s, %q: got %q, %v, want %q", path, body, got, err, want)
			}
		}
	}
}

func TestXHTML(t *testing.T) {
	page := `<?xml version="1.0"?><html xml:lang="nl" xmlns="http://www.w3.org/1999/xhtml"><head><script src="x.js"/><title>T</title></head>` +
		`<body><div hidden="hidden"/><p>a<br/>b</p><textarea/>c<svg><circle/></svg></body></html>`
	for _, contentType := range []string{
		"application/xhtml+xml; charset=utf-8", "Application/XHTML+XML; charset=utf-8", "application/xhtml+xml; charset",
		"application/vnd.wap.xhtml+xml",
	} {
		for path, view := range map[string]pipeline.View{"scanned": {}, "parsed": parsingView} {
			got, err := New().Read(t.Context(), pipeline.Raw{ContentType: contentType, Body: []byte(page)}, view)
			if want := "T|a|b|c|"; err != nil || showMarks.Replace(got.Content) != want || got.Language != "nl" {
				t.Errorf("%s, %s: got %s %q, %v, want %s", contentType, path, showMarks.Replace(got.Content), got.Language, err, want)
			}
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := []byte(strings.Repeat("<p>x", 2*tokensPerCheck))
	for path, view := range map[string]pipeline.View{"scanned": {}, "parsed": parsingView} {
		if _, err := New().Read(ctx, pipeline.Raw{Body: body}, view); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want canceled", path, err)
		}
	}
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{
			{ContentType: "text/html", Body: []byte(sample), ContentLanguage: "en"},
			{ContentType: "application/xhtml+xml", Body: []byte(`<html xml:lang="nl"><script/><p>a<br/>b</p></html>`)},
		},
		Golden: "testdata", Types: map[string]string{".html": "text/html", ".xhtml": "application/xhtml+xml"},
		Large: func(n int) pipeline.Raw {
			return pipeline.Raw{Body: []byte(strings.Repeat("<p class=a><b>x</b> ", n/20))}
		},
		Deep: func(n int) pipeline.Raw { return pipeline.Raw{Body: []byte(strings.Repeat("<div>", n))} },
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample), false, "main; h1..h2", ".x")
	f.Add([]byte("<table><tr><td hidden>a<td>b<form><svg><title>x</svg><p>y"), true, "td", "p")
	f.Add([]byte(`<pre>a
b<li><a href="/cdn-cgi/l/email-protection#5c35323a331c39243d312c3039723f3331">[email&#160;protected]`), false, "", "")
	f.Fuzz(func(t *testing.T, body []byte, xml bool, sel, rem string) {
		raw := pipeline.Raw{ContentType: "text/html", Body: body}
		if xml {
			raw.ContentType = "application/xhtml+xml"
		}
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{})
		pipelinetest.CheckReader(t, New(), raw, parsingView)
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{Select: parseSelectors(sel), Remove: parseSelectors(rem)})
	})
}

// benchPage is a page of some 80 KB with a fifth of it text.
func benchPage() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><head><title>A page</title><script>" + strings.Repeat("var x = {};", 1000) + "</script></head><body>")
	for b.Len() < 80<<10 {
		fmt.Fprintf(&b, `<div class="card card--wide js-track" id="c%d" data-track="click" style="color:red"><h3 class="card__title">`, r.IntN(1e6))
		for range 3 + r.IntN(5) {
			fmt.Fprintf(&b, "word%d ", r.IntN(5000))
		}
		b.WriteString(`</h3><ul class="list">`)
		for range 3 {
			fmt.Fprintf(&b, `<li class="list__item"><a href="/path/to/%d?ref=list" class="link">item %d</a></li>`, r.IntN(1e6), r.IntN(5000))
		}
		b.WriteString("</ul><p>")
		for range 20 {
			fmt.Fprintf(&b, "<b>text</b> and more%d ", r.IntN(5000))
		}
		b.WriteString("</p></div>\n")
	}
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	raw := pipeline.Raw{ContentType: "text/html", Body: benchPage()}
	for name, view := range map[string]pipeline.View{"scanned": {}, "parsed": {Select: parseSelectors("body"), Remove: parseSelectors(".list")}} {
		b.Run(name, func(b *testing.B) { readertest.Bench(b, New(), raw, view) })
	}
}

// BenchmarkBare is what the reader's primitives cost: a pass of the tokenizer over every
// name, attribute and text, and a parse.
func BenchmarkBare(b *testing.B) {
	page := benchPage()
	b.Run("tokenizer", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			z := html.NewTokenizer(bytes.NewReader(page))
			for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
				switch tt {
				case html.TextToken:
					z.Text()
				case html.StartTagToken, html.SelfClosingTagToken:
					for _, more := z.TagName(); more; {
						_, _, more = z.TagAttr()
					}
				}
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := html.Parse(bytes.NewReader(page)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
