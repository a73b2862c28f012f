package xml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/test/readertest"
)

func newRaw(body string) pipeline.Raw {
	return pipeline.Raw{ContentType: "application/xml", Body: []byte(body)}
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Golden: "testdata",
		Types: map[string]string{
			".rss": "application/rss+xml", ".atom": "application/atom+xml", ".xml": "application/xml", ".svg": "image/svg+xml",
			".docbook": "application/docbook+xml", ".opml": "text/x-opml", ".soap": "application/soap+xml", ".rdf": "application/rdf+xml",
		},
		Samples: []pipeline.Raw{newRaw(`<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>`), newRaw("\ufeff<!-- c --><a>b</a>"), newRaw("<a>x & y &nope;</a>")},
		Broken: []pipeline.Raw{
			newRaw(""), newRaw("text"), newRaw("<a>"), newRaw("</a>"), newRaw("<a>\n<b>c</b>"), newRaw("<a><b>c</b"), newRaw("<a"),
			newRaw("<a><!-- </a>"), newRaw("<!DOCTYPE a [ <!ENTITY b 'c'> "), newRaw("<rss><channel><item><title>a</title>"),
		},
		Large: func(n int) pipeline.Raw { return newRaw("<a>" + strings.Repeat("<b c='d'>e</b>", n/14) + "</a>") },
		Deep:  func(n int) pipeline.Raw { return newRaw(strings.Repeat("<a>", n) + strings.Repeat("</a>", n)) },
	})
}

// A thousand million laughs cost nothing, and no entity is fetched: the references stay.
func TestEntities(t *testing.T) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE l [<!ENTITY l0 'lol'>")
	for i := range 30 {
		fmt.Fprintf(&b, "<!ENTITY l%d '%s'>", i+1, strings.Repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	b.WriteString(`<!ENTITY f SYSTEM "file:///etc/passwd">]><l>&l30;&f;&amp;&eacute;</l>`)
	got, err := New().Read(t.Context(), newRaw(b.String()), pipeline.View{})
	want := []string{"a reference to an entity that is endless or too long was left as it is, in line 1",
		"a reference to an entity in another file was left as it is, in line 1"}
	if err != nil || got.Content != "&l30;&f;&é\n" || !slices.Equal(got.Passed, want) {
		t.Errorf("got %q, %q, %v", got.Content, got.Passed, err)
	}
}

// The entities that a page declares itself are read as XML says, whether it is XML or XHTML.
func TestDeclaredEntities(t *testing.T) {
	for _, tc := range []struct{ subset, content, want string }{
		{`<!ENTITY shop "Hera &amp; Co">`, `<a>At &shop;, &shop;</a>`, "At Hera & Co, Hera & Co|"},
		{`<!ENTITY a 'x'><!ENTITY a 'y'><!ENTITY % p 'z'>`, `<a>&a; &p; %p; &b;</a>`, "x &p; %p; &b;|"},
		{"<!-- don't -->\n<!ENTITY in  '&out;!' >\n<!ENTITY\tout \"a 'lamp'\nof &#916;elos\">", `<a>&in;</a>`, "a 'lamp' of Δelos!|"},
		{`<!ENTITY nbsp "&#160;"><!ENTITY eacute "E"><!ENTITY lt "&#38;#60;">`, `<a>a&nbsp;&eacute;&lt;</a>`, "a E<|"},
		{`<!ENTITY bold "<b>so</b> said <i>&#34;he&#34;</i>">`, `<a>&bold;</a>`, "so said \"he\"|"},
		{`<!ENTITY say "one 'two' &#34;three&#34;">`, `<a b="&say;" c='&say;'>d</a>`, `b: one 'two' "three", c: one 'two' "three"|d|`},
		{`<!ENTITY a "x">`, `<a><!-- &a; --><![CDATA[&a;]]>&a;</a>`, "&a;x|"},
		{`<?pi don't?><!-- <!ENTITY a "y"> "]> --><!ENTITY a "]>">`, `<a>&a;</a>`, "]>|"},
		{`<!ENTITY a "&b;"><!ENTITY b "&a;">`, `<a>&a; &b;</a>`, "&a; &b;|"},
		{`<!ELEMENT a (#PCDATA)><!ATTLIST a b CDATA "c>d">`, `<a>&#65;</a>`, "A|"},
	} {
		body := "<?xml version='1.1'?><!DOCTYPE a [" + tc.subset + "]>" + tc.content
		got, err := New().Read(t.Context(), newRaw(body), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != tc.want {
			t.Errorf("%s: got %q, %v, want %q", body, text, err, tc.want)
		}
	}
	page := newRaw(`<!DOCTYPE html [<!ENTITY shop "Hera">]><html><title>&shop;</title><br/><p>At &shop;</p></html>`)
	for _, page.ContentType = range []string{"application/xml", "application/xhtml+xml"} {
		reader := pipeline.Reader(New())
		if page.ContentType != "application/xml" {
			reader = html.New()
		}
		if got, err := reader.Read(t.Context(), page, pipeline.View{}); err != nil || got.Title != "Hera" || !strings.Contains(got.Content, "At Hera") {
			t.Errorf("%s: got %q, %q, %v", page.ContentType, got.Title, got.Content, err)
		}
	}
}

// A document type that is too long costs no time, and is said.
func TestLongDocumentType(t *testing.T) {
	body := "<!DOCTYPE a [<!ENTITY b 'x'>" + strings.Repeat("<?p?>", 100_000) + "]><a>&b;</a>"
	got, err := New().Read(t.Context(), newRaw(body), pipeline.View{})
	if err != nil || got.Content != "&b;\n" || len(got.Passed) != 1 {
		t.Errorf("got %q, %q, %v", got.Content, got.Passed, err)
	}
}

// References to a long entity are read until they make the page many times as long.
func TestLongEntities(t *testing.T) {
	body := "<!DOCTYPE a [<!ENTITY b '" + strings.Repeat("lamp ", 10_000) + "'>]><a>" + strings.Repeat("&b;", 100) + "</a>"
	got, err := New().Read(t.Context(), newRaw(body), pipeline.View{})
	if n := strings.Count(got.Content, "&b;"); err != nil || n < 50 || n == 100 || len(got.Passed) != 1 {
		t.Errorf("%d references stay, %q, %v", n, got.Passed, err)
	}
}

const rates = `<r:Envelope xmlns:r="x"><r:subject>Rates</r:subject><Cube time="2026"><Cube currency="USD" rate="1.08"/><Cube currency="JPY" rate="160"/></Cube>` +
	`<Note xml:id="n">See <b>here</b></Note></r:Envelope>`

const news = `<rss><channel><title>News</title><item><title>A</title><pubDate>Mon</pubDate><media:title>M</media:title></item><item><title>B</title></item></channel></rss>`

func TestViews(t *testing.T) {
	readertest.Views(t, New(), newRaw(rates), map[[2]string]string{
		{"xpath://Cube[@currency='USD']/@rate", ""}: "1.08|",
		{"//Cube/Cube", ""}:                         "<currency: USD, rate: 1.08|><currency: JPY, rate: 160|>",
		{"/r:Envelope/r:subject", ""}:               "Rates|",
		{"//*[local-name()='subject']/text()", ""}:  "Rates|",
		{"[currency=JPY]", ""}:                      "<currency: JPY, rate: 160|>",
		{"subject; note > b", ""}:                   "Rates|here|",
		{"Envelope", "cube"}:                        "Rates|See here|",
		{"", "//Cube[@currency='USD']"}:             "Rates|time: 2026|<currency: JPY, rate: 160|>See here|",
		{"//Note", "//b"}:                           "See|",
	})
	readertest.Views(t, New(), newRaw(news), map[[2]string]string{
		{"pubDate", ""}:         "<Mon|>",
		{"item", ""}:            "<A|><B|>",
		{"//item[2]/title", ""}: "<B|>",
		{"//media:title", ""}:   "<M|>",
		{"", "//item[1]"}:       "News|<B|>",
	})
	readertest.Views(t, New(), newRaw(`<html xmlns="http://www.w3.org/1999/xhtml"><p>a</p><p>b</p></html>`), map[[2]string]string{
		{"//p[2]", ""}: "b|",
	})
}

func TestSelectorGone(t *testing.T) {
	readertest.Gone(t, New(), newRaw(rates), map[string]string{
		"//none":  `nothing on the page matches "xpath://none"`,
		"none":    `nothing on the page matches "none"`,
		"jq:.a":   `nothing on the page matches "jq:.a": it is a page of HTML or XML, which such a selector is not for`,
		"//a/@no": `nothing on the page matches "xpath://a/@no"`,
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(rates), "//Cube/@rate", "b")
	f.Add([]byte(news), "item; //title[1]", "pubDate")
	f.Add([]byte(`<feed xmlns="a"><entry><title type="html">&lt;b</title><content><p>x</p></content></entry></feed>`), "", "//entry[last()]")
	f.Add([]byte("<a>half a letter \xc2\x1e</a>"), "a", "")
	f.Add([]byte("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;<![CDATA[d]]></a>"), "a", "")
	f.Add([]byte("<!DOCTYPE a [<!ENTITY b '&c;&c;'><!-- ' --><!ENTITY c \"<d e='f'>&#60;&g;</d>\">]><a h='&b;'>&b;&c;</a>"), "a", "")
	f.Fuzz(func(t *testing.T, body []byte, sel, rem string) {
		raw := pipeline.Raw{Body: body}
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{})
		pipelinetest.CheckReader(t, New(), raw, readertest.View(sel, rem))
	})
}

func benchPage() []byte {
	var b bytes.Buffer
	b.WriteString("<rss><channel><title>News</title>")
	for i := range 300 {
		fmt.Fprintf(&b, "<item><title>Lamp number %d</title><link>https://example.com/%d</link><guid>%d</guid><description>A lamp with a shade, in blue and green.</description></item>\n", i, i, i)
	}
	b.WriteString("</channel></rss>")
	return b.Bytes()
}

// BenchmarkRead stands beside BenchmarkBare, a pass over the tokens.
func BenchmarkRead(b *testing.B) {
	body := benchPage()
	for name, v := range map[string]pipeline.View{"all": {}, "xpath": readertest.View("//item/title", ""), "css": readertest.View("item > title", "")} {
		b.Run(name, func(b *testing.B) { readertest.Bench(b, New(), pipeline.Raw{Body: body}, v) })
	}
}

func BenchmarkBare(b *testing.B) {
	body := benchPage()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := xml.NewDecoder(bytes.NewReader(body))
		d.Strict = false
		for _, err := d.RawToken(); err == nil; {
			_, err = d.RawToken()
		}
	}
}
