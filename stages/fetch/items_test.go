package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/json"
	"github.com/vokter/vokter/stages/fetch/readers/xml"
)

// readItems returns the outcome of reading body as the items of a feed, and its text in one line.
func readItems(t *testing.T, mediaType, body string, view pipeline.View) (flow.Outcome, string) {
	t.Helper()
	view.Items = true
	readers := NewReaders(html.New(), json.New(), xml.New())
	req := flow.Request{Page: "https://example.com/feed", Documents: []flow.RequestDocument{{ID: "d", View: view}}}
	os := Read(t.Context(), req, Page{Status: http.StatusOK, Header: http.Header{"Content-Type": {mediaType}}, Body: []byte(body)}, readers)
	if len(os) != 1 {
		t.Fatalf("got %d outcomes", len(os))
	}
	content, err := flow.UnpackText(os[0].Packed)
	if err != nil && os[0].Kind == flow.OutcomeRead {
		t.Fatal(err)
	}
	return os[0], strings.TrimSpace(strings.NewReplacer(string(pipeline.ItemStart), "", string(pipeline.ItemEnd), "", "\n", " ").Replace(content))
}

// TestItemWithWordsOfAnother: a feed with another item is another text, though the words are the same.
func TestItemWithWordsOfAnother(t *testing.T) {
	hash := func(guid string) string {
		o, _ := readItems(t, "text/xml", `<rss><channel><item><guid>`+guid+`</guid><title>A</title></item></channel></rss>`, pipeline.View{})
		return o.TextHash
	}
	if one := hash("1"); one == hash("2") || one != hash("1") {
		t.Error("the hash does not tell the items apart")
	}
}

func TestItems(t *testing.T) {
	rss := func(items string) string { return `<rss><channel><title>Feed</title>` + items + `</channel></rss>` }
	for name, c := range map[string]struct {
		mediaType, body string
		ids             []string
		want            string
	}{
		"rss":     {"application/rss+xml", rss(`<item><guid>1</guid><title>A</title></item><item><link>http://x/2</link><title>B</title></item>`), []string{"id 1", "id http://x/2"}, "A http://x/2 B"},
		"atom":    {"text/xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><title>A</title><id>urn:1</id></entry><entry><link href="http://x/2"/><title>B</title></entry></feed>`, []string{"id urn:1", "id http://x/2"}, "A http://x/2 B"},
		"rss 1.0": {"application/xml", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>F</title></channel><item rdf:about="urn:a"><title>A</title></item></rdf:RDF>`, []string{"id urn:a"}, "A"},
		"json": {"application/feed+json", `{"items":[{"content_text":"A","id":"one"},{"url":"http://x/2","content_html":"<p>B<p>C"},{"id":3,"title":"D"}],"title":"F","version":"https://jsonfeed.org/version/1.1"}`,
			[]string{"id one", "id http://x/2", "id 3"}, "content_text: A B C title: D"},
		"no identity":       {"text/xml", rss(`<item><title>A</title></item>`), []string{"text \x02A\n\x03"}, "A"},
		"one identity":      {"text/xml", rss(`<item><guid>1</guid><title>A</title></item><item><guid>1</guid><title>B</title></item><item><guid>1</guid><title>B</title></item>`), []string{"id 1", "id 1\n\x02B\n\x03"}, "A B"},
		"an item of blanks": {"text/xml", rss(`<item><guid>1</guid></item><item><guid>2</guid><title>B</title></item>`), []string{"id 2"}, "B"},
		"no items":          {"text/xml", rss(``), nil, "Feed"},
	} {
		o, got := readItems(t, c.mediaType, c.body, pipeline.View{})
		var keys []string
		for _, id := range c.ids {
			keys = append(keys, itemKey(id))
		}
		if got != c.want || fmt.Sprint(o.Items) != fmt.Sprint(keys) {
			t.Errorf("%s: got %q with %v (%s), want %q with %v", name, got, o.Items, o.Reason, c.want, keys)
		}
	}
	body := rss(`<item><guid>1</guid><title>A 12:30</title></item><item><guid>2</guid><title>12:31</title></item>`)
	if o, got := readItems(t, "text/xml", body, pipeline.View{Ignore: []string{`\d+:\d+`}}); got != "A" || len(o.Items) != 1 {
		t.Errorf("without the ignored: got %q, %v", got, o.Items)
	}
	for mediaType, body := range map[string]string{
		"text/html": "<p>A", "application/json": `{"items":[{"id":1}]}`, "text/xml": "<a><item>1</item></a>",
	} {
		if o, _ := readItems(t, mediaType, body, pipeline.View{}); o.Class != pipeline.FailUnreadable || !strings.Contains(o.Reason, "no RSS, Atom or JSON feed") {
			t.Errorf("%s: got %s, %q", mediaType, o.Class, o.Reason)
		}
	}
	if o, _ := readItems(t, "text/xml", rss(strings.Repeat("<item><title>A</title></item>", maxItems+1)), pipeline.View{}); o.Class != pipeline.FailTooLarge {
		t.Errorf("with too many items: got %s, %q", o.Class, o.Reason)
	}
}

// TestItemsShareTheirPatterns: the regular expressions are compiled once for all items.
func TestItemsShareTheirPatterns(t *testing.T) {
	feed := pipeline.Text{Items: []pipeline.FeedItem{}}
	for i := range 1000 {
		from := len(feed.Content)
		feed.Content += fmt.Sprint("item ", i, "\n")
		feed.Items = append(feed.Items, pipeline.FeedItem{ID: fmt.Sprint(i), Start: from, End: len(feed.Content)})
	}
	view := pipeline.View{Items: true, Ignore: []string{`(?:ab?c?d?){120}z`}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _, err := source{Raw: pipeline.Raw{Body: []byte("x")}, reader: newSeparateEntry(fixedReader{feed})}.text(t.Context(), view)
	runtime.ReadMemStats(&after)
	if err != nil || len(got.Items) != 1000 {
		t.Fatalf("%d items, %v", len(got.Items), err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
		t.Errorf("%d bytes were taken", taken)
	}
}

// fixedReader is a reader that reads the same from each page.
type fixedReader struct{ text pipeline.Text }

func (fixedReader) ContentTypes() []string { return []string{"text/fixed"} }

func (f fixedReader) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	return f.text, nil
}

// TestIgnoreEnds: patterns that look at all that follows for each character end with the context.
func TestIgnoreEnds(t *testing.T) {
	content := strings.Repeat("a", pipeline.MaxText)
	for _, pattern := range []string{`a*b|a`, `(?:a?){490}z`, `(a{1,30}){1,16}z`} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := Ignored(ctx, content, pattern); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", pattern, err)
		}
		cancel()
	}
}

// TestLongBlocks: a block is cut between words, and characters stay whole.
func TestLongBlocks(t *testing.T) {
	long := strings.Repeat("word 12 ", (32<<10)/4)
	got, err := Ignored(t.Context(), long+"\n", `\b\d+\b`)
	if want := strings.TrimSpace(strings.Repeat("word ", (32<<10)/4)) + "\n"; err != nil || got != want {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
	if got, err := Ignored(t.Context(), strings.Repeat("€", (32<<10)), "x"); err != nil || !utf8.ValidString(got) || got != strings.Repeat("€", (32<<10))+"\n" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A pattern that a command brought, and that no lint has seen, is refused when it is used.
func TestIgnoreRefuses(t *testing.T) {
	_, err := Ignored(t.Context(), "a", `(a{1,30}){1,30}z`)
	e, ok := errors.AsType[*pipeline.FetchError](err)
	if !ok || e.Class != pipeline.FailUnreadable || !strings.Contains(e.Reason, "at most 1000") {
		t.Errorf("got %v", err)
	}
}

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
