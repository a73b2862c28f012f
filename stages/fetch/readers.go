package fetch

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline"
)

// Readers is a registry of readers by media type. It is safe for concurrent use, also
// while pages are read.
type Readers struct {
	mu     sync.RWMutex
	byType map[string]pipeline.Reader // nil where the reader was taken away
}

// NewReaders returns a registry that holds rs.
func NewReaders(rs ...pipeline.Reader) *Readers {
	r := &Readers{byType: make(map[string]pipeline.Reader)}
	for _, rd := range rs {
		r.Register(rd)
	}
	return r
}

// Register adds rd for its media types. It replaces a reader that had them before.
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
		r.byType[strings.ToLower(t)] = nil
	}
}

// ContentTypes lists the media types that have a reader of their own, sorted.
func (r *Readers) ContentTypes() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var types []string
	for t, rd := range r.byType {
		if rd != nil {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// forType returns the reader of mediaType: its own, or that of the type that it is a kind of.
func (r *Readers) forType(mediaType string) (pipeline.Reader, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rd, known := r.byType[mediaType]
	if !known {
		rd = r.byType[kindOf(mediaType)]
	}
	return rd, rd != nil
}

// kindOf returns the type whose reader reads mediaType where it has none of its own, or "".
func kindOf(mediaType string) string {
	switch {
	case strings.HasSuffix(mediaType, "+json"):
		return "application/json"
	case strings.HasSuffix(mediaType, "+xml"):
		return "application/xml"
	case strings.HasPrefix(mediaType, "text/"):
		return "text/plain"
	}
	return ""
}

// find returns the reader of mediaType, or a *pipeline.FetchError.
func (r *Readers) find(mediaType string) (pipeline.Reader, error) {
	if rd, ok := r.forType(mediaType); ok {
		return rd, nil
	}
	reason := fmt.Sprintf("there is no reader for pages of type %.80q", mediaType)
	if mediaType == "application/pdf" {
		reason += "; with fetch.pdf (watch --pdf) the program pdftotext reads them"
	}
	return nil, &pipeline.FetchError{Class: pipeline.FailType, Reason: reason}
}
