package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/charset"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// sniffLength is how much of a page is looked at to find out its type, in bytes.
const sniffLength = 1024

// boms are the byte order marks of UTF-8 and UTF-16.
var boms = [][]byte{{0xef, 0xbb, 0xbf}, {0xfe, 0xff}, {0xff, 0xfe}}

// source is a page as its reader gets it, whether it was fetched, pushed or stored.
type source struct {
	pipeline.Raw
	reader  *readerEntry
	readers *Readers // of the check
}

// open returns raw with its reader, or why there is none.
func (r *Readers) open(raw pipeline.Raw) (source, error) {
	reader, err := r.find(raw.MediaType())
	return source{raw, reader, r}, err
}

// open returns p with its reader, still in its charset, or why there is none. A sitemap needs none.
func (p Page) open(isSitemap bool, readers *Readers) (source, error) {
	raw := pipeline.Raw{URL: p.URL, ContentType: contentType(p.Header, p.Body), ContentLanguage: p.Header.Get("Content-Language"), Body: p.Body}
	if isText(raw.MediaType()) && html.Gzipped(p.Body) && !isSitemap {
		return source{}, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is compressed with gzip more than once"}
	}
	s, err := readers.open(raw)
	if err != nil && isSitemap {
		s.reader, err = sitemapOnly(err), nil
	}
	return s, err
}

// decoded returns s with its text in UTF-8.
func (s source) decoded() (source, error) {
	if !isText(s.MediaType()) || html.Gzipped(s.Body) {
		return s, nil
	}
	err := recoverPanic(func() error { s.Body = charset.Decode(s.Body, s.ContentType); return nil })
	return s, err
}

// sitemapOnly returns an entry for pages that only their sitemaps can be read from. All other documents of such a page
// fail with err.
func sitemapOnly(err error) *readerEntry { return newSeparateEntry(failingReader{err}) }

// failingReader is a reader that fails with err.
type failingReader struct{ err error }

func (failingReader) ContentTypes() []string { return nil }

func (r failingReader) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{}, r.err
}

// contentType returns the header's value. What body looks like decides where the header says nothing or names no type,
// and where it says no more than that the page is a file, text or HTML, which servers say of what they do not know.
func contentType(h http.Header, body []byte) string {
	value := h.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(value)
	if err != nil && mediaType == "" || !strings.Contains(mediaType, "/") {
		mediaType = sniff(body)
		if declared := charset.In(value); declared != "" { // one that was sniffed would be a guess from the first bytes
			return mime.FormatMediaType(mediaType, map[string]string{"charset": declared})
		}
		return mediaType
	}
	switch mediaType {
	case "*/*", "unknown/unknown", "application/unknown", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download",
		"application/gzip", "application/x-gzip": // the source has decompressed it
		return sniff(body)
	case "text/plain", "text/html":
		if found := typeBySignature(body); found != "" && (mediaType != "text/html" || found != "image/svg+xml") { // HTML may begin with a picture
			written, _, _ := strings.Cut(value, ";")
			return found + strings.TrimPrefix(value, written)
		}
	}
	return value
}

// sniff returns what body looks like.
func sniff(body []byte) string {
	if found := typeBySignature(body); found != "" {
		return found
	}
	head := body[:min(len(body), sniffLength)]
	if slices.ContainsFunc(boms, func(bom []byte) bool { return bytes.HasPrefix(head, bom) }) { // it would be taken for plain text
		head = charset.Decode(head, "")
	}
	mediaType, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	return mediaType
}

// typeBySignature returns the type of a page that can be nothing else, or "".
func typeBySignature(body []byte) string {
	if bytes.HasPrefix(body, boms[1]) || bytes.HasPrefix(body, boms[2]) {
		body = charset.Decode(body, "")
	}
	start := bytes.TrimLeft(bytes.TrimPrefix(body, boms[0]), " \t\r\n")
	switch {
	case len(start) == 0:
	case start[0] == '{' || start[0] == '[':
		if json.Valid(start) {
			return "application/json"
		}
	case bytes.HasPrefix(start, []byte("%PDF-")):
		return "application/pdf"
	case bytes.HasPrefix(start, []byte("BEGIN:VCALENDAR")):
		return "text/calendar"
	case start[0] == '<':
		return xmlTypeOf(start[:min(len(start), sniffLength)])
	}
	return ""
}

// xmlTypeOf returns the type of a page that begins with head, which begins with a "<", if it is one
// of the formats of XML that are no HTML.
func xmlTypeOf(head []byte) string {
	for {
		head = bytes.TrimLeft(head, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(head, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(head, []byte("<!--")):
			end = "-->"
		}
		_, rest, found := bytes.Cut(head, []byte(end))
		if end == "" || !found {
			break
		}
		head = rest
	}
	if root, ok := bytes.CutPrefix(head, []byte("<!DOCTYPE ")); ok { // it names the root, as RSS 0.91 has it
		head = append([]byte{'<'}, bytes.TrimLeft(root, " \t\r\n")...)
	}
	for name, mediaType := range map[string]string{
		"<rss": "application/rss+xml", "<feed": "application/atom+xml", "<rdf:RDF": "application/rdf+xml", "<svg": "image/svg+xml", "<opml": "text/x-opml",
	} {
		if rest, ok := bytes.CutPrefix(head, []byte(name)); ok && len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n>"), rest[0]) >= 0 {
			return mediaType
		}
	}
	return ""
}

// plainTypes are the types of text that have no reader of their own and are no text/*. They are read as plain text.
var plainTypes = []string{
	"application/xml-dtd", "application/yaml", "application/x-yaml", "application/toml", "application/x-toml", "application/javascript",
	"application/x-javascript", "application/ecmascript", "application/typescript", "application/sql", "application/x-sql", "application/graphql",
	"application/x-sh", "application/x-shellscript", "application/x-perl", "application/x-python", "application/x-php", "application/x-httpd-php",
	"application/x-tex", "application/x-latex", "application/x-troff-man", "application/x-subrip", "application/n-triples", "application/n-quads",
	"application/trig", "application/sparql-query", "application/json5", "application/hjson", "application/x-pem-file",
	"application/pem-certificate-chain", "application/pgp-signature", "application/pgp-keys", "application/vnd.apple.mpegurl",
	"application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl", "application/x-bibtex", "application/x-research-info-systems", "message/rfc822",
}

// textTypes are the other types of text, beside those of text/*, +xml, +json and +yaml.
var textTypes = []string{
	"application/csv", "application/xml", "application/ndjson", "application/x-ndjson", "application/jsonl",
	"application/x-jsonlines", "application/json-seq", "application/xml-external-parsed-entity",
}

// isText reports whether pages of mediaType are written in a charset.
func isText(mediaType string) bool {
	return baseType(mediaType) != "" || slices.Contains(textTypes, mediaType)
}
