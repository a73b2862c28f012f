package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
)

var readers = NewReaders(html.New(), plain.New())

func bodyHash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func newPage(body string, header ...string) Page {
	p := Page{URL: "http://a.example/", Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(body), Time: t0, Took: time.Second}
	for i := 0; i < len(header); i += 2 {
		p.Header.Set(header[i], header[i+1])
	}
	return p
}

// unpackedText returns the text of o with its marks.
func unpackedText(t *testing.T, o flow.Outcome) string {
	t.Helper()
	s, err := flow.UnpackText(o.Packed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadDocuments(t *testing.T) {
	body := `<title>T</title><p>It is 12:07.</p><div id=a>one</div><div id=b>two</div>`
	req := newRequest("http://a.example/", 3)
	req.BodyHash, req.ETag = bodyHash("before"), `"old"`
	req.Documents = []flow.RequestDocument{
		{ID: "whole"},
		{ID: "same", View: pipeline.View{Select: []pipeline.Selector{{CSS: "#a"}}}, TextHash: text.Hash("one\n")},
		{ID: "other", View: pipeline.View{Select: []pipeline.Selector{{CSS: "#b"}}}, TextHash: text.Hash("three\n")},
		{ID: "ignoring", View: pipeline.View{Ignore: []string{`\d+:\d+`, `^one$`}}},
	}
	got := Read(t.Context(), req, newPage(body, "ETag", `W/"new"`, "Date", "Tue, 01 Sep 2026 10:00:00 GMT", "Last-Modified", "Tue, 01 Sep 2026 09:00:00 GMT"), readers)
	if len(got) != 4 {
		t.Fatalf("got %d outcomes, want 4", len(got))
	}
	for i, o := range got {
		if o.Part != i || o.Parts != 4 || o.Document != req.Documents[i].ID || o.Check != 3 || o.BodyHash != bodyHash(body) || o.ETag != `W/"new"` ||
			o.LastModified != "Tue, 01 Sep 2026 09:00:00 GMT" || o.Status != 200 || o.Bytes != int64(len(body)) || !o.Time.Equal(t0) || o.Took != time.Second || o.Extractor != "html/5" {
			t.Errorf("part %d: got %+v", i, o)
		}
	}
	if o := got[0]; o.Kind != flow.OutcomeRead || unpackedText(t, o) != "T\nIt is 12:07.\none\ntwo\n" || o.Title != "T" || o.TextHash != text.Hash(unpackedText(t, o)) {
		t.Errorf("whole: got %+v", o)
	}
	if o := got[1]; o.Kind != flow.OutcomeUnchanged || o.Against != text.Hash("one\n") || o.Packed != nil {
		t.Errorf("same: got %+v", o)
	}
	if o := got[2]; o.Kind != flow.OutcomeRead || unpackedText(t, o) != "two\n" {
		t.Errorf("other: got %+v", o)
	}
	if o := got[3]; o.Kind != flow.OutcomeRead || unpackedText(t, o) != "T\nIt is .\ntwo\n" {
		t.Errorf("ignoring: got %q", unpackedText(t, o))
	}
}

// TestStruckOutPrice: what a page strikes out is no value, unless it is chosen or there is no other. Cents in an
// element of their own are cents.
func TestStruckOutPrice(t *testing.T) {
	const offer = `<html lang=de><p class=offer>statt <del>1.500,00 €</del>, jetzt <b>950,00 €</b> und <s class=old>1.100 €</s>`
	for _, tt := range []struct{ body, css, want string }{
		{offer, ".offer", "950.00 EUR\n"},
		{offer, ".old", "1100 EUR\n"},
		{`<html lang=en><p class=offer><span style="text-decoration: line-through">$150</span> $95`, ".offer", "95 USD\n"},
		{`<html lang=en><p class=offer>€<b>17</b><span class=cents>95</span>`, ".offer", "17.95 EUR\n"},
		{`<html lang=de><p class=offer><b>17</b><i>95</i> €<sup>1</sup>`, ".offer", "17.95 EUR\n"},
		{`<html lang=de><p class=offer>17<sub>95</sub> €`, ".offer", "17.95 EUR\n"},
		{`<html lang=de><p class=offer>1<b>795</b> €`, ".offer", "1795 EUR\n"},
		{`<html lang=de><p class=offer>Nr. 42 <b>95 €</b>`, ".offer", "95 EUR\n"},
		{`<html lang=en><p class=offer><i>1</i><i>7</i><i>9</i><i>5</i> visitors`, ".offer", "1795\n"},
		{`<html lang=en><p class=offer><strike>$12</strike> sold out`, ".offer", "12 USD\n"},
	} {
		view := pipeline.View{Select: []pipeline.Selector{{CSS: tt.css}}, Value: &pipeline.Value{}}
		got, err := ReadAgain(t.Context(), pipeline.Raw{ContentType: "text/html; charset=utf-8", Body: []byte(tt.body)}, view, readers)
		if got != tt.want || err != nil {
			t.Errorf("%s of %s: got %q, %v, want %q", tt.css, tt.body, got, err, tt.want)
		}
	}
}

func TestReadUnchanged(t *testing.T) {
	req := newRequest("http://a.example/", 3)
	req.BodyHash, req.ETag, req.LastModified = bodyHash("<p>x"), `"old"`, "Tue, 01 Sep 2026 09:00:00 GMT"
	got := Read(t.Context(), req, newPage("<p>x", "ETag", `"new"`), readers)
	if len(got) != 1 || got[0].Kind != flow.OutcomeUnchanged || got[0].Against != req.BodyHash || got[0].Parts != 0 || got[0].ETag != `"new"` || got[0].BodyHash != req.BodyHash {
		t.Errorf("equal body: got %+v", got)
	}
	p := newPage("")
	p.Status = 304
	got = Read(t.Context(), req, p, readers)
	if len(got) != 1 || got[0].Kind != flow.OutcomeUnchanged || got[0].Against != req.BodyHash || got[0].Parts != 0 || got[0].ETag != `"old"` || got[0].LastModified != req.LastModified {
		t.Errorf("304: got %+v", got)
	}
	p.Header.Set("ETag", `"new"`)
	if got = Read(t.Context(), req, p, readers); got[0].ETag != `"new"` {
		t.Errorf("304 with another tag: got %+v", got)
	}
	req.BodyHash = ""
	if got = Read(t.Context(), req, p, readers); got[0].Kind != flow.OutcomeFailed || got[0].Class != pipeline.FailStatus {
		t.Errorf("304 without a body that stands: got %+v", got)
	}
}

type brokenReader struct{ err error }

func (brokenReader) ContentTypes() []string { return []string{"text/x-broken"} }
func (b brokenReader) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	if b.err != nil {
		return pipeline.Text{}, b.err
	}
	panic("a reader's mistake")
}

func TestReadFailures(t *testing.T) {
	sel := pipeline.View{Select: []pipeline.Selector{{CSS: "#none"}}}
	for _, tc := range []struct {
		name, body, contentType string
		view                    pipeline.View
		reader                  pipeline.Reader
		class, reason           string
		parts                   int
	}{
		{"empty body", " \n", "text/html", pipeline.View{}, nil, pipeline.FailEmpty, "the page is empty", 1},
		{"empty body, scoped", "", "text/html", sel, nil, pipeline.FailEmpty, "the page is empty", 1},
		{"no text", "<p><script>x</script>", "text/html", pipeline.View{}, nil, pipeline.FailEmpty, "there is no text on the page", 1},
		{"all ignored", "<p>12:07", "text/html", pipeline.View{Ignore: []string{".*"}}, nil, pipeline.FailEmpty, "there is no text on the page", 1},
		{"no match", "<p>x", "text/html", sel, nil, pipeline.FailSelectorGone, `nothing on the page matches "#none"`, 1},
		{"bad selector", "<p>x", "text/html", pipeline.View{Select: []pipeline.Selector{{CSS: "p["}}}, nil, pipeline.FailUnreadable, `select: "p[" is not a CSS selector`, 1},
		{"bad pattern", "<p>x", "text/html", pipeline.View{Ignore: []string{"("}}, nil, pipeline.FailUnreadable, "ignore[0]: \"(\" is not a regular expression: error parsing regexp", 1},
		{"too large", "<p>" + strings.Repeat("x ", pipeline.MaxText), "text/html", pipeline.View{}, nil, pipeline.FailTooLarge, "the text of the page is larger than 2 MiB", 1},
		{"type", "%PDF-1.7", "application/pdf", pipeline.View{}, nil, pipeline.FailType, `there is no reader for pages of type "application/pdf"; with fetch.pdf the program pdftotext reads them`, 0},
		{"sniffed", "%PDF-1.7", "", pipeline.View{}, nil, pipeline.FailType, `there is no reader for pages of type "application/pdf"`, 0},
		{"compressed", "\x1f\x8b\x08", "text/html", pipeline.View{}, nil, pipeline.FailUnreadable, "the page is compressed with gzip more than once", 0},
		{"panic", "x", "text/x-broken", pipeline.View{}, brokenReader{}, pipeline.FailUnreadable, "the reader gave up on this page", 1},
		{"error", "x", "text/x-broken", pipeline.View{}, brokenReader{errors.New("secret")}, pipeline.FailUnreadable, "the page could not be read", 1},
	} {
		req := newRequest("http://a.example/", 3)
		req.Documents[0].View = tc.view
		rs := readers
		if tc.reader != nil {
			rs = NewReaders(tc.reader)
		}
		got := Read(t.Context(), req, newPage(tc.body, "Content-Type", tc.contentType, "ETag", `"x"`), rs)
		if len(got) != 1 || got[0].Kind != flow.OutcomeFailed || got[0].Class != tc.class || !strings.HasPrefix(got[0].Reason, tc.reason) || got[0].Parts != tc.parts {
			t.Errorf("%s: got %+v", tc.name, got)
			continue
		}
		if got[0].BodyHash+got[0].ETag != "" {
			t.Errorf("%s: the next check would not see this failure again: %+v", tc.name, got[0])
		}
	}
}

func TestReadSniffs(t *testing.T) {
	for body, want := range map[string]string{
		"<!doctype html><p>caf\xc3\xa9":      "café\n",
		"just text\nin lines":                "just text\nin lines\n",
		"<html><meta charset=x><p>caf\xe9":   "café\n",
		"\xef\xbb\xbf<html><p>mark of order": "mark of order\n",
	} {
		p := newPage(body)
		p.Header.Del("Content-Type")
		got := Read(t.Context(), newRequest("http://a.example/", 1), p, readers)
		if len(got) != 1 || got[0].Kind != flow.OutcomeRead {
			t.Errorf("%q: got %+v", body, got)
		} else if s := unpackedText(t, got[0]); s != want {
			t.Errorf("%q: got %q, want %q", body, s, want)
		}
	}
}

func TestOneFailingDocumentKeepsTheOthers(t *testing.T) {
	req := newRequest("http://a.example/", 3)
	req.Documents = []flow.RequestDocument{{ID: "a"}, {ID: "b", View: pipeline.View{Select: []pipeline.Selector{{CSS: "#none"}}}}, {ID: "c"}}
	got := Read(t.Context(), req, newPage("<p>x", "ETag", `"x"`), readers)
	var kinds []string
	for _, o := range got {
		kinds = append(kinds, o.Kind)
		if o.ETag+o.BodyHash != "" {
			t.Errorf("%s: validators stand though a document failed", o.Document)
		}
	}
	if s := strings.Join(kinds, " "); s != "read failed read" {
		t.Errorf("got %s", s)
	}
}

func TestReadBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Read(ctx, newRequest("http://a.example/", 3), newPage(strings.Repeat("<p>x", 1e5)), readers); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
}

func TestValidators(t *testing.T) {
	const date, old, young = "Tue, 01 Sep 2026 10:00:00 GMT", "Tue, 01 Sep 2026 09:59:00 GMT", "Tue, 01 Sep 2026 09:59:01 GMT"
	for _, tc := range []struct{ etag, modified, date, wantTag, wantModified string }{
		{`"a"`, old, date, `"a"`, old},
		{`W/"a"`, young, date, `W/"a"`, ""},
		{"", old, "", "", ""},
		{"", "yesterday", date, "", ""},
		{"", date, old, "", ""},
		{strings.Repeat("x", maxValidator+1), "", "", "", ""},
	} {
		h := http.Header{}
		h.Set("ETag", tc.etag)
		h.Set("Last-Modified", tc.modified)
		h.Set("Date", tc.date)
		if tag, modified := validators(h); tag != tc.wantTag || modified != tc.wantModified {
			t.Errorf("%+v: got %q, %q", tc, tag, modified)
		}
	}
}

func TestIgnore(t *testing.T) {
	for _, tc := range []struct {
		content  string
		patterns []string
		want     string
	}{
		{"a 1 b\n2\nc\n", []string{`\d`}, "a b\nc\n"},
		{"a\nb\n", []string{`(?s)a.b`}, "a\nb\n"},
		{"\x02a\n1\n\x03\x021\n\x03b\n", []string{`^1$`}, "\x02a\n\x03b\n"},
		{"\x02\x021\n\x03\x03", []string{`1`}, ""},
		{"foo12bar\n", []string{`\d+`}, "foo bar\n"},
		{"x y\n", []string{`x`, `y`}, ""},
		{"a\nb\n", []string{`\n`, `$`, `^`, `z*`}, "a\nb\n"},
	} {
		got, err := Ignored(t.Context(), tc.content, tc.patterns...)
		if tc.patterns[0] == `\n` {
			got = strings.ReplaceAll(got, " ", "")
		}
		if err != nil || got != tc.want {
			t.Errorf("%q without %q: got %q, %v, want %q", tc.content, tc.patterns, got, err, tc.want)
		}
	}
}

func TestReaders(t *testing.T) {
	r := NewReaders(html.New())
	if _, ok := r.forType("text/html"); !ok {
		t.Error("text/html was not registered")
	}
	r.Register(brokenReader{})
	r.Unregister("TEXT/HTML", "text/unknown")
	if got := strings.Join(r.ContentTypes(), " "); got != "application/vnd.wap.xhtml+xml application/xhtml+xml text/x-broken" {
		t.Errorf("got %s", got)
	}
}

func TestFailed(t *testing.T) {
	for _, tc := range []struct {
		err   error
		class string
		after time.Duration
	}{
		{&pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: 5 * time.Second}, pipeline.FailBusy, 5 * time.Second},
		{&pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: -5 * time.Second}, pipeline.FailBusy, 0},
		{context.DeadlineExceeded, pipeline.FailTimeout, 0},
		{errors.New("secret"), pipeline.FailNetwork, 0},
	} {
		o := Failed(newRequest("http://a.example/", 3), t0, time.Second, tc.err)
		if o.Kind != flow.OutcomeFailed || o.Class != tc.class || o.RetryAfter != tc.after || strings.Contains(o.Reason, "secret") || o.Parts != 0 || o.Took != time.Second {
			t.Errorf("%v: got %+v", tc.err, o)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("<p>x"), "text/html", "main", `\d+`)
	f.Add([]byte("a\nb"), "text/plain; charset=koi8-r", "", "")
	f.Add([]byte("\xff\xfea\x00"), "", "p", "")
	f.Add([]byte("<li>a<li>1"), "application/xhtml+xml", "", "1")
	f.Fuzz(func(t *testing.T, body []byte, contentType, selector, pattern string) {
		req := newRequest("http://a.example/", 1)
		req.Documents = append(req.Documents, flow.RequestDocument{ID: "scoped", View: pipeline.View{Remove: []pipeline.Selector{{CSS: selector}}}},
			flow.RequestDocument{ID: "ignoring", View: pipeline.View{Ignore: []string{pattern}}})
		got := Read(t.Context(), req, newPage(string(body), "Content-Type", contentType), readers)
		if len(got) != 1 && len(got) != 3 {
			t.Fatalf("%d outcomes", len(got))
		}
		for i, o := range got {
			back, err := flow.OutcomeFrom(o.Message())
			if err != nil || back.Kind != o.Kind || back.Reason != o.Reason || back.Title != o.Title {
				t.Fatalf("part %d does not survive its message: %+v, %v", i, back, err)
			}
			switch o.Kind {
			case flow.OutcomeRead:
				s := unpackedText(t, o)
				if text.Hash(s) != o.TextHash || blocks.Blank(s) {
					t.Errorf("part %d: text %q, hash %s", i, s, o.TextHash)
				}
				again := req
				again.Documents = []flow.RequestDocument{{ID: "again", View: req.Documents[i].View, TextHash: o.TextHash}}
				if o := Read(t.Context(), again, newPage(string(body), "Content-Type", contentType), readers); o[0].Kind != flow.OutcomeUnchanged {
					t.Errorf("part %d: a second reading gave %+v", i, o[0])
				}
			case flow.OutcomeFailed:
				if o.Class == "" || o.Reason == "" || o.Class == pipeline.FailNetwork {
					t.Errorf("part %d: %+v", i, o)
				}
			default:
				t.Errorf("part %d is %q", i, o.Kind)
			}
		}
	})
}

// TestANumberThatComesAgain asks for a check whose number was given before, by a process
// that was killed before it could store that: the last request is the one to answer, whether
// the earlier one waits, has a higher number, or is under way.
func TestANumberThatComesAgain(t *testing.T) {
	req := func(check uint64, nonce string) *job {
		return &job{req: flow.Request{Page: "https://example.com/", Incarnation: "i", Check: check, Nonce: nonce}}
	}
	add := func(q *queue, j *job) {
		t.Helper()
		if !q.add(j) {
			t.Fatal("no room")
		}
	}
	q := newQueue(limits{maxPerHost: 2, rate: 1000, burst: 10, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return time.Unix(1, 0) })
	add(q, req(4, "old"))
	jobs, _, _ := q.takeReady()
	if len(jobs) != 1 {
		t.Fatalf("took %d jobs, want the first", len(jobs))
	}
	add(q, req(4, "old")) // once more: it is under way
	add(q, req(5, "older"))
	add(q, req(4, "new"))
	again, _, _ := q.takeReady()
	if len(again) != 1 || again[0].req.Nonce != "new" {
		t.Fatalf("took %d jobs, want the one that was asked for last", len(again))
	}
	q.finish(jobs[0], 0, answerPrompt)
	q.finish(again[0], 0, answerPrompt)
	if !q.isIdle() {
		t.Error("something is left")
	}
}
