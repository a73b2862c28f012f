package fetch

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/charset"
)

// sniffed is how much of a page without a type is looked at, in bytes.
const sniffed = 1024

// boms are the byte order marks of UTF-8 and UTF-16.
var boms = [][]byte{{0xef, 0xbb, 0xbf}, {0xfe, 0xff}, {0xff, 0xfe}}

// Readers is a registry of readers by media type. It is safe for concurrent use, also
// while pages are read.
type Readers struct {
	mu     sync.RWMutex
	byType map[string]pipeline.Reader
}

// NewReaders returns a registry that holds rs.
func NewReaders(rs ...pipeline.Reader) *Readers {
	r := &Readers{byType: make(map[string]pipeline.Reader)}
	for _, rd := range rs {
		r.Register(rd)
	}
	return r
}

// Register adds rd for its media types, in place of a reader that had them before.
func (r *Readers) Register(rd pipeline.Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range rd.ContentTypes() {
		r.byType[strings.ToLower(t)] = rd
	}
}

// Unregister takes away the readers of mediaTypes. Pages that are being read are read to
// their end.
func (r *Readers) Unregister(mediaTypes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range mediaTypes {
		delete(r.byType, strings.ToLower(t))
	}
}

// ContentTypes lists the media types that can be read, sorted.
func (r *Readers) ContentTypes() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var types []string
	for t := range r.byType {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

func (r *Readers) forType(mediaType string) (pipeline.Reader, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rd, ok := r.byType[mediaType]
	return rd, ok
}

// find returns the reader of mediaType, or a *pipeline.FetchError that says which there are.
func (r *Readers) find(mediaType string) (pipeline.Reader, error) {
	if rd, ok := r.forType(mediaType); ok {
		return rd, nil
	}
	return nil, &pipeline.FetchError{Class: pipeline.FailType,
		Reason: fmt.Sprintf("there is no reader for pages of type %.80q; there are readers for %s", mediaType, strings.Join(r.ContentTypes(), ", "))}
}

// contentType returns the header's value and its media type; where there is none it is
// what body looks like.
func contentType(h http.Header, body []byte) (value, mediaType string) {
	value = h.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(value)
	if err != nil && mediaType == "" {
		head := body[:min(len(body), sniffed)]
		if slices.ContainsFunc(boms, func(bom []byte) bool { return bytes.HasPrefix(head, bom) }) { // it would be taken for plain text
			head = charset.Decode(head, "")
		}
		value = http.DetectContentType(head)
		mediaType, _, _ = mime.ParseMediaType(value)
		value = mediaType // its charset is a guess from the first bytes
	}
	return value, mediaType
}

// isText reports whether pages of mediaType are written in a charset.
func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+xml") ||
		strings.HasSuffix(mediaType, "+json") || mediaType == "application/xml" || mediaType == "application/json"
}
