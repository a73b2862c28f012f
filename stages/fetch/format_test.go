package fetch

import (
	"net/http"
	"testing"
)

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
