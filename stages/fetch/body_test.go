package fetch

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// versionedReader is a reader whose rules have a name; they put a word in front of the body.
type versionedReader struct{ name, word string }

func (versionedReader) ContentTypes() []string { return []string{"text/x-ruled"} }
func (r versionedReader) Extractor() string    { return r.name }
func (r versionedReader) Read(_ context.Context, raw pipeline.Raw, v pipeline.View) (pipeline.Text, error) {
	if len(v.Select) > 0 && !strings.Contains(string(raw.Body), v.Select[0].CSS) {
		return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailSelectorGone, Reason: "nothing matches"}
	}
	return pipeline.Text{Content: r.word + " " + string(raw.Body) + "\n", Title: raw.ContentType + raw.ContentLanguage + raw.URL}, nil
}

func TestBodyIsKept(t *testing.T) {
	known := flow.RequestDocument{ID: "known", TextHash: text.Hash("café\n")}
	absent := flow.RequestDocument{ID: "absent", View: pipeline.View{Select: []pipeline.Selector{{CSS: "#none"}}}}
	noise := make([]byte, flow.MaxStoredBody)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise)
	large := "<p>caf\xe9<!--" + strings.ReplaceAll(string(noise), "-", "") + string(noise[:9]) + "-->"
	for _, tc := range []struct {
		name, body string
		documents  []flow.RequestDocument
		want       string
		asked      bool
	}{
		{"read", "<p>caf\xe9", []flow.RequestDocument{{ID: "a"}}, "<p>café", false},
		{"two documents", "<p>caf\xe9", []flow.RequestDocument{{ID: "a"}, {ID: "b"}}, "<p>café", false},
		{"only the second is new", "<p>caf\xe9", []flow.RequestDocument{known, {ID: "b"}}, "<p>café", false},
		{"only the first is there", "<p>caf\xe9", []flow.RequestDocument{{ID: "b"}, absent}, "<p>café", false},
		{"nothing is new", "<p>caf\xe9", []flow.RequestDocument{known, absent}, "", false},
		{"nothing is there", "<p>caf\xe9", []flow.RequestDocument{absent}, "", false},
		{"nothing is new, but it is asked for", "<p>caf\xe9", []flow.RequestDocument{known, absent}, "<p>café", true},
		{"nothing is there, and it is asked for", "<p>caf\xe9", []flow.RequestDocument{absent}, "", true},
		{"too large", large, []flow.RequestDocument{{ID: "a"}}, "", false},
	} {
		req := newRequest("http://a.example/", 3)
		req.Documents, req.KeepBody = tc.documents, tc.asked
		p := newPage(tc.body, "Content-Type", "text/html; charset=latin1", "Content-Language", "fr")
		p.URL = "http://a.example/redirected"
		for i, o := range Read(t.Context(), req, p, readers) {
			if i < len(tc.documents)-1 || tc.want == "" {
				if o.Body != nil {
					t.Errorf("%s: part %d has a body", tc.name, i)
				}
				continue
			}
			if b := o.Body; b == nil || b.URL != p.URL || b.ContentType != "text/html; charset=latin1" || b.ContentLanguage != "fr" {
				t.Errorf("%s: got %+v", tc.name, b)
			} else if got, err := flow.UnpackText(b.Packed); err != nil || got != tc.want {
				t.Errorf("%s: got %q, %v, want %q", tc.name, got, err, tc.want)
			}
		}
	}
}

// A body that was kept is read by today's rules, with each document's view.
func TestRebase(t *testing.T) {
	p := newPage("B 12:07", "Content-Type", "text/x-ruled")
	first := Read(t.Context(), newRequest("http://a.example/", 1), newPage("A 11:55", "Content-Type", "text/x-ruled", "Content-Language", "en"), NewReaders(versionedReader{"r/1", "old"}))
	ignoring := pipeline.View{Ignore: []string{`\d+:\d+`}}
	req := newRequest("http://a.example/", 2)
	req.Rebase = first[0].Body
	req.Documents = []flow.RequestDocument{
		{ID: "whole"},
		{ID: "ignoring", View: ignoring},
		{ID: "absent then", View: pipeline.View{Select: []pipeline.Selector{{CSS: "B"}}}},
		{ID: "absent now", View: pipeline.View{Select: []pipeline.Selector{{CSS: "A"}}}},
		{ID: "known", TextHash: text.Hash("new B 12:07\n")},
	}
	got := Read(t.Context(), req, p, NewReaders(versionedReader{"r/2", "new"}))
	if len(got) != len(req.Documents) {
		t.Fatalf("got %d outcomes", len(got))
	}
	for i, want := range []string{"new A 11:55\n", "new A\n"} {
		r := got[i].Rebased
		if r == nil || r.Failed != "" || r.Extractor != "r/2" || r.TextHash != text.Hash(want) || r.Title != "text/x-ruled"+"en"+"http://a.example/" {
			t.Errorf("%s: got %+v", got[i].Document, r)
			continue
		}
		if s, err := flow.UnpackText(r.Packed); err != nil || s != want {
			t.Errorf("%s: got %q, %v, want %q", got[i].Document, s, err, want)
		}
	}
	if r := got[2].Rebased; r == nil || !strings.HasSuffix(r.Failed, ": nothing matches") || r.TextHash != "" {
		t.Errorf("absent then: got %+v", r)
	}
	for _, o := range got[3:] {
		if o.Rebased != nil {
			t.Errorf("%s: got %+v", o.Document, o.Rebased)
		}
	}
	if s := unpackedText(t, got[0]); s != "new B 12:07\n" || got[4].Body == nil {
		t.Errorf("got %q, body %v", s, got[4].Body)
	}

	for name, tc := range map[string]struct {
		body    flow.Body
		readers *Readers
		want    string
	}{
		"damaged":      {flow.Body{ContentType: "text/x-ruled", Packed: []byte("x")}, NewReaders(versionedReader{}), "it is damaged"},
		"no reader":    {flow.Body{ContentType: "image/x-ruled", Packed: flow.PackText("x")}, NewReaders(bodyReader{}), `there is no reader for pages of type "image/x-ruled"`},
		"it panics":    {flow.Body{ContentType: "text/x-broken", Packed: flow.PackText("x")}, NewReaders(bodyReader{}, brokenReader{}), "the reader gave up on this page"},
		"no such type": {flow.Body{Packed: flow.PackText("x")}, NewReaders(bodyReader{}), `there is no reader for pages of type ""`},
	} {
		req := newRequest("http://a.example/", 2)
		req.Rebase = &tc.body
		p := newPage("x", "Content-Type", tc.readers.ContentTypes()[0])
		o := Read(t.Context(), req, p, tc.readers)[0]
		if o.Kind != flow.OutcomeRead || o.Rebased == nil || !strings.HasSuffix(o.Rebased.Failed, ": "+tc.want) || o.Rebased.Packed != nil {
			t.Errorf("%s: got %+v", name, o.Rebased)
		}
	}
}

func TestContentType(t *testing.T) {
	const html, text, file = "text/html; charset=koi8-r", "text/plain", "application/octet-stream"
	for _, tc := range []struct{ header, body, want string }{
		{html, "<p>a", html},
		{html, `{"a": 1}`, "application/json; charset=koi8-r"},
		{html, `{"a": 1`, html},
		{html, "[a] <p>b", html},
		{html, "<svg><path/></svg><p>a", html},
		{html, "<?xml version='1.0'?>\n<!-- a -->\n<rss version='2.0'>", "application/rss+xml; charset=koi8-r"},
		{html, "<?xml version='1.0'?>\n<!DOCTYPE rss PUBLIC 'a' 'b'>\n<rss version='0.91'>", "application/rss+xml; charset=koi8-r"},
		{html, "<?xml version='1.0'?><html>", html},
		{text, "<!DOCTYPE rss [<!ENTITY a 'b'>]><rss>", "application/rss+xml"},
		{text, "\xff\xfe{\x00}\x00", "application/json"},
		{file, "\xfe\xff\x00[\x00]", "application/json"},
		{html, "<feedback>", html},
		{text, "<svg xmlns='a'>", "image/svg+xml"},
		{text, "a {", text},
		{text, "BEGIN:VCALENDAR\r\n", "text/calendar"},
		{text, "%PDF-1.7", "application/pdf"},
		{"application/xml", `{"a": 1}`, "application/xml"},
		{file, "<feed xmlns='a'>", "application/atom+xml"},
		{"application/gzip", "<?xml version='1.0'?><a>", "text/xml"},
		{file, "<!doctype html><p>", "text/html"},
		{file, "\x89PNG\r\n\x1a\n", "image/png"},
		{"html", "<!doctype html><p>", "text/html"},
		{"html; charset=koi8-r", "<!doctype html><p>", "text/html; charset=koi8-r"},
		{"text/html charset=koi8-r", "<!doctype html><p>", "text/html; charset=koi8-r"},
		{"application/", "<feed xmlns='a'>", "application/atom+xml"},
		{"/", "a b", text},
		{"*/*", "<!doctype html><p>", "text/html"},
		{"", " [1]", "application/json"},
		{"", "<rdf:RDF>", "application/rdf+xml"},
		{"", "<?xml version='1.0'?><a>", "text/xml"},
		{"", "\ufeffa b", text},
		{"", "", text},
		{"\xff\xff\xffȺ/\xff; CharSet=koi8-r", "<p>a", "text/html; charset=koi8-r"},
	} {
		h := http.Header{}
		if tc.header != "" {
			h.Set("Content-Type", tc.header)
		}
		if got := contentType(h, []byte(tc.body)); got != tc.want {
			t.Errorf("%q, %q: got %q, want %q", tc.header, tc.body, got, tc.want)
		}
	}
}

func TestKinds(t *testing.T) {
	for mediaType, want := range map[string]string{"application/x+json": "application/json", "image/x+xml": "application/xml", "text/x": "text/plain", "image/png": "",
		"application/xml-dtd": "text/plain", "application/yaml": "text/plain", "application/openapi+yaml": "text/plain", "text/json": "application/json", "application/zip": ""} {
		if got := baseType(mediaType); got != want {
			t.Errorf("%s: got %q", mediaType, got)
		}
	}
	r := NewReaders(bodyReader{})
	if _, ok := r.forType("text/x"); !ok {
		t.Error("a kind of text has no reader")
	}
	r.Unregister("text/x")
	if _, ok := r.forType("text/x"); ok {
		t.Error("a type whose reader was taken away has one")
	}
}
