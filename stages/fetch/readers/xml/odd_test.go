package xml

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/readertest"
)

// A page with something odd in it is read, and says what was passed over.
func TestOddPages(t *testing.T) {
	const item = "<item><title>Argus opens</title></item>"
	for _, tc := range []struct{ name, body, want, passed string }{
		{"control characters", "<a><b>bad \x0b\x00sign</b>\n<b>x\ufffe\uffffy</b></a>", "bad sign|xy|", "4 control characters were dropped, the first in line 1"},
		{"a reference to one", "<a>\n<b>&#8;x</b></a>", "x|", "a control character was dropped, in line 2"},
		{"a surrogate", "<a>&#xD800;x&#xFFFE;</a>", "x|", "2 control characters were dropped, the first in line 1"},
		{"a control character in an attribute", "<a b='c\x01d&#1;'/>", "b: cd|", "2 control characters were dropped, the first in line 1"},
		{"windows-1252", "<a>don&#146;t &#x80;5 &#X41;</a>", "don’t €5 A|", ""},
		{"windows-1252 written as control characters", "<a>don\u0092t pay \u00805 \u00a7\u00c2\u0085</a>", "don’t pay €5 §Â|", ""},
		{"references in CDATA", "<a><![CDATA[&#146; &#8;]]><!-- &#8; --></a>", "&#146; &#8;|", ""},
		{"XML 1.1", "<?xml version='1.1' encoding='UTF-8'?>\n<a>x</a>", "x|", ""},
		{"a version nobody knows", " <?xml version='7'?><a>x</a>", "x|", ""},
		{"a declaration within", "<a><?xml version='1.1'?>x</a>", "x|", "markup that is no XML was read as in HTML, in line 1"},
		{"a bare sign", "<a>1 < 2 & 3 > 2</a>", "1 < 2 & 3 > 2|", "markup that is no XML was read as in HTML, in line 1"},
		{"a sign in an attribute", "<a b='1 < 2'>x</a>", "b: 1 < 2|x|", "markup that is no XML was read as in HTML, in line 1"},
		{"an attribute without quotes", "<a Href=http://x.example/1?a=b>x</a>", "href: http://x.example/1?a=b|x|", "markup that is no XML was read as in HTML, in line 1"},
		{"the end of CDATA in a text", "<a>x]]>y &amp; z</a>", "x]]>y & z|", "markup that is no XML was read as in HTML, in line 1"},
		{"dashes in a comment", "<a>x<!-- 1 -- 2 --></a>", "x|", "markup that is no XML was read as in HTML, in line 1"},
		{"a stray end tag", "<a><b>x</b></c></a>", "x|", "an end tag that ends nothing was passed over, in line 1"},
		{"a missing end tag", "<a>\n<b>x</a>", "x|", "an element without an end tag was ended, in line 2"},
		{"an end tag in other letters", "<a><B>x</b></a>", "x|", ""},
		{"text around", "warning: x\n<a>y</a>\nz", "y|", "2 texts outside of the document's element were passed over, the first in line 1"},
		{"two documents", "<a>x</a><a>y</a>", "x|y|", "a second document follows the first, in line 1"},
		{"half an end tag", "<a><b>x</b></", "x|", "the page has no end tag of <a>, in line 1"},
		{"a feed behind a warning", "<br/><b>Warning</b><rss><channel>" + item + "</channel></rss>", "<Argus opens|>", "2 more documents follow the first, the first in line 1"},
		{"a feed without its ends", "<rss><channel>" + item + "\n</channel></rss", "<Argus opens|>", "the page has no end tag of <rss>, in line 2"},
		{"a feed that breaks off", "<rss><channel>" + item, "<Argus opens|>", "the page has no end tag of <channel>, in line 1"},
		{"a feed with a stray tag", "<rss><channel><item></p><title>Argus opens</title></item></channel></rss>", "<Argus opens|>", "an end tag that ends nothing was passed over, in line 1"},
	} {
		got, err := New().Read(t.Context(), newRaw(tc.body), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, text, err, tc.want)
		}
		if passed := strings.Join(got.Passed, "; "); passed != tc.passed {
			t.Errorf("%s: passed over: %q, want %q", tc.name, passed, tc.passed)
		}
	}
}

// Of a feed that breaks off within an item the complete items are read where items alone count. Elsewhere the
// missing ones would count as removed.
func TestCutFeed(t *testing.T) {
	raw := newRaw("<feed><entry><title>a</title></entry><entry><title>b</title><content>the secr")
	got, err := New().Read(t.Context(), raw, pipeline.View{Items: true})
	if err != nil || readertest.Marked(got.Content) != "<a|>" || len(got.Items) != 1 || len(got.Passed) != 1 {
		t.Errorf("got %q, %d items, %q, %v", got.Content, len(got.Items), got.Passed, err)
	}
	if _, err := New().Read(t.Context(), raw, pipeline.View{}); err == nil {
		t.Error("a feed that breaks off within an item was read as a whole")
	}
}

// What has the name of a feed is one only if it has what feeds have.
func TestFeedNames(t *testing.T) {
	const product = "<product><name>Lamp</name><price>12.00</price></product>"
	for _, tc := range []struct {
		body string
		feed bool
		want string
	}{
		{"<feed><shop>Hera</shop>" + product + "</feed>", false, "Hera|Lamp|12.00|"},
		{"<channel>" + product + product + "</channel>", false, "<Lamp|12.00|><Lamp|12.00|>"},
		{"<feed><entry><name>Lamp</name></entry></feed>", false, "Lamp|"},
		{"<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title></feed>", true, "News|"},
		{"<atom:feed xmlns:atom='http://www.w3.org/2005/Atom'><atom:entry><atom:title>a</atom:title></atom:entry></atom:feed>", true, "<a|>"},
		{"<feed><entry><title>a</title><updated>x</updated></entry></feed>", true, "<a|>"},
		{"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'></rdf:RDF>", true, ""},
		{"<rdf:RDF xmlns:rdf='x' xmlns='http://purl.org/rss/1.0/'><channel><title>News</title></channel></rdf:RDF>", true, "News|"},
		{"<rdf:RDF xmlns:rdf='x' xmlns:foaf='y'><foaf:Person><foaf:name>Argus</foaf:name></foaf:Person></rdf:RDF>", false, "Argus|"},
		{"<channel><title>News</title><item><link>http://a.example</link></item></channel>", true, "News|<http://a.example|>"},
	} {
		got, err := New().Read(t.Context(), newRaw(tc.body), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != tc.want || (got.Items != nil) != tc.feed {
			t.Errorf("%s: got %q, a feed: %v, %v; want %q", tc.body, text, got.Items != nil, err, tc.want)
		}
	}
}

// Elements of extensions count where the feed itself does not say the same, and so does what a shop offers.
func TestFeedExtensions(t *testing.T) {
	for _, tc := range []struct{ item, want string }{
		{"<title>Amphora</title><g:id>1</g:id><g:price>12.00 EUR</g:price><g:availability>in stock</g:availability>", "Amphora|12.00 EUR|in stock|"},
		{"<g:title>Amphora</g:title><g:link>http://a.example</g:link><g:description>&lt;p&gt;red&lt;/p&gt;</g:description>", "Amphora|http://a.example|red|"},
		{"<title>Amphora</title><price>12.00</price><comments>http://c.example</comments>", "Amphora|12.00|"},
		{"<dc:title>Only</dc:title><dc:date>2026</dc:date><slash:comments>7</slash:comments>", "Only|"},
		{"<title>Own</title><dc:title>Own</dc:title><description>text</description><itunes:summary>other</itunes:summary>", "Own|text|"},
		{"<title>Cast</title><itunes:subtitle>short</itunes:subtitle><itunes:summary>long</itunes:summary>", "Cast|long|"},
		{"<title>Cast</title><itunes:subtitle>short</itunes:subtitle>", "Cast|short|"},
		{"<title>Film</title><media:group><media:title>Film</media:title><media:description>A film</media:description></media:group>", "Film|A film|"},
		{"<title>Film</title><description> </description><media:content><media:description>A film</media:description></media:content>", "Film|A film|"},
		{"<title>a</title><content:encoded>whole</content:encoded><itunes:summary>part</itunes:summary>", "a|whole|"},
	} {
		got, err := New().Read(t.Context(), newRaw("<rss><channel><item>"+tc.item+"</item></channel></rss>"), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != "<"+tc.want+">" {
			t.Errorf("%s: got %q, %v", tc.item, text, err)
		}
	}
}

// Scripts and styles within a feed are no text.
func TestScriptsInFeeds(t *testing.T) {
	const body = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>a</title><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">` +
		`<style>p{}</style><p>seen</p><script>now()</script></div></content></entry></feed>`
	got, err := New().Read(t.Context(), newRaw(body), pipeline.View{})
	if text := readertest.Marked(got.Content); err != nil || text != "<a|seen|>" {
		t.Errorf("got %q, %v", text, err)
	}
}

// The text of an item counts in whichever element of whichever extension it stands.
func TestFullTexts(t *testing.T) {
	for item, want := range map[string]string{
		`<title>a</title><xhtml:body xmlns:xhtml="http://www.w3.org/1999/xhtml"><p>one <b>two</b></p><script>x</script></xhtml:body>`: "a|one two|",
		`<title>a</title><description>one</description><body xmlns="http://www.w3.org/1999/xhtml"><p>one</p><p>two</p></body>`:        "a|one|two|",
		`<title>a</title><body>&lt;p&gt;one&lt;/p&gt;two</body>`:                                                                      "a|one|two|",
		`<title>a</title><description>one</description><fullitem>one two</fullitem>`:                                                  "a|one two|",
		`<title>a</title><description>one</description><content:encoded> </content:encoded>`:                                          "a|one|",
		`<title>a</title><description>one</description><body/>`:                                                                       "a|one|",
	} {
		got, err := New().Read(t.Context(), newRaw("<rss><channel><item>"+item+"</item></channel></rss>"), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != "<"+want+">" {
			t.Errorf("%s: got %q, %v", item, text, err)
		}
	}
}

// Text that a feed does not call HTML, and that does not look like it, stays as it is.
func TestTextsWithSigns(t *testing.T) {
	for entry, want := range map[string]string{
		`<summary type="text">use &lt;p&gt;x&lt;/p&gt; &amp;amp;</summary>`: "use <p>x</p> &amp;|",
		`<summary type="text/plain">use &lt;p&gt;x&lt;/p&gt;</summary>`:     "use <p>x</p>|",
		`<summary type="html">use &lt;tag&gt; &lt;b&gt;x</summary>`:         "use x|",
		`<summary type="text/html">use &lt;tag&gt; &lt;b&gt;x</summary>`:    "use x|",
		`<summary>a List&lt;String&gt; &amp;amp; more</summary>`:            "a List<String> & more|",
		`<summary>the tag &lt;b&gt;, and &lt;tag&gt;</summary>`:             "the tag <b>, and <tag>|",
		`<summary>if a &lt;b and c&gt; d</summary>`:                         "if a <b and c> d|",
		`<summary>one&lt;br&gt;two</summary>`:                               "one|two|",
		`<summary>see &lt;a href="x"&gt;this</summary>`:                     "see this|",
		`<summary>see &lt;i&gt;this&lt;/i&gt;</summary>`:                    "see this|",
		`<title mode="base64">dGhlIGxhbXA=</title>`:                         "the lamp|",
		`<content type="application/octet-stream">dGhlIDxiPmxhbXA8L2I+IAIBPHA+
			YQ==</content>`: "the lamp|a|",
		`<title type="application/x-own">lamp</title>`:                       "lamp|",
		`<title>a</title><content type="image/png">iVBORw0KGgo=</content>`:   "a|",
		`<title>a</title><content type="application/json">{"b":1}</content>`: `a|{"b":1}|`,
		`<title>a &amp;#2; b &lt;x&gt;</title>`:                              "a b <x>|",
		`<title>&lt;script&gt; is a tag</title>`:                             "<script> is a tag|",
	} {
		got, err := New().Read(t.Context(), newRaw(`<feed xmlns="http://www.w3.org/2005/Atom"><entry>`+entry+`</entry></feed>`), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != "<"+want+">" {
			t.Errorf("%s: got %q, %v", entry, text, err)
		}
	}
}

// The title of a feed is read as those of its items.
func TestFeedTitles(t *testing.T) {
	for title, want := range map[string]string{
		`<title type="html">News of &lt;b&gt;Hera&lt;/b&gt;</title>`:                                      "News of Hera",
		`<title>List&lt;String&gt; &amp;amp; more</title>`:                                                "List<String> & more",
		`<title mode="base64">dGhlIGxhbXA=</title>`:                                                       "the lamp",
		`<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">News of <b>Hera</b></div></title>`: "News of Hera",
	} {
		got, err := New().Read(t.Context(), newRaw(`<feed xmlns="http://www.w3.org/2005/Atom">`+title+`</feed>`), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != want+"|" || got.Title != want {
			t.Errorf("%s: got %q, %q, %v", title, got.Title, text, err)
		}
	}
}

// An outline of OPML may have a title in place of its text.
func TestOutlines(t *testing.T) {
	const body = `<opml><body><outline title="A" xmlUrl="http://a.example/f"/><outline text="b" title="B"/><outline text=" " title="C"/></body></opml>`
	got, err := New().Read(t.Context(), newRaw(body), pipeline.View{})
	if text := readertest.Marked(got.Content); err != nil || text != "<A, xmlUrl: http://a.example/f|><b|><C|>" {
		t.Errorf("got %q, %v", text, err)
	}
}
