package fetch

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Readers is a registry of readers by media type: those that are built in, over them those of a
// configuration, and over these what is registered and taken away while pages are read. It is safe
// for concurrent use.
type Readers struct {
	mu                              sync.RWMutex
	builtin, configured, registered map[string]*readerEntry // nil where the reader was taken away
	byType                          map[string]*readerEntry // all of them; it is replaced, and never changed
	endless                         *endless
}

// readerEntry is a reader with the semaphores that bound how many pages it reads at once.
type readerEntry struct {
	pipeline.Reader
	semaphore     chan struct{} // holds one for each page that is being read
	slowSemaphore chan struct{} // the same for those that take long, see readInTurn; nil: these wait for semaphore too
}

// maxSlowReads is how many pages a reader that is not built in reads at once, at most, and how many slow
// ones the built-in readers do.
const maxSlowReads = 4

// newSlowSemaphore returns a semaphore for pages that may take long. If there are several
// processors, it leaves one of them to the others.
func newSlowSemaphore() chan struct{} {
	return make(chan struct{}, max(1, min(maxSlowReads, runtime.GOMAXPROCS(0)-1)))
}

// newSeparateEntry returns an entry of rd with a semaphore of its own, so that pages which it reads
// slowly delay no pages of other readers.
func newSeparateEntry(rd pipeline.Reader) *readerEntry {
	return &readerEntry{rd, newSlowSemaphore(), nil}
}

// NewReaders returns a registry whose built-in readers are rs. They share their semaphores: as many
// pages are read at once as there are processors, and fewer that take long.
func NewReaders(rs ...pipeline.Reader) *Readers {
	r := &Readers{builtin: make(map[string]*readerEntry), registered: make(map[string]*readerEntry), endless: newEndless()}
	turns, slow := make(chan struct{}, runtime.GOMAXPROCS(0)), newSlowSemaphore()
	for _, rd := range rs {
		addReader(r.builtin, &readerEntry{endingReader{rd, r.endless}, turns, slow})
	}
	r.byType = r.builtin
	return r
}

// addReader enters e for its media types.
func addReader(byType map[string]*readerEntry, e *readerEntry) {
	for _, t := range e.ContentTypes() {
		byType[strings.ToLower(t)] = e
	}
}

// merge makes byType. r.mu is held.
func (r *Readers) merge() {
	r.byType = maps.Clone(r.builtin)
	maps.Copy(r.byType, r.configured)
	maps.Copy(r.byType, r.registered)
}

// Register adds rd for its media types. It replaces a reader that had them before.
func (r *Readers) Register(rd pipeline.Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	addReader(r.registered, newSeparateEntry(endingReader{rd, r.endless}))
	r.merge()
}

// Unregister takes away the readers of mediaTypes. Pages that are being read are read to
// their end.
func (r *Readers) Unregister(mediaTypes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range mediaTypes {
		r.registered[strings.ToLower(t)] = nil
	}
	r.merge()
}

// Replace replaces the readers of the configuration by rs, in one step. A later one of rs replaces
// an earlier one. What Register and Unregister did stands.
func (r *Readers) Replace(rs ...pipeline.Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured = make(map[string]*readerEntry)
	for _, rd := range rs {
		addReader(r.configured, newSeparateEntry(endingReader{rd, r.endless}))
	}
	r.merge()
}

// snapshot returns r as it is. A check reads with one snapshot, so that the page and an earlier
// one that it is compared with are read by the same reader.
func (r *Readers) snapshot() *Readers {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &Readers{byType: r.byType, endless: r.endless}
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
func (r *Readers) forType(mediaType string) (*readerEntry, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rd, known := r.byType[mediaType]
	if !known {
		rd = r.byType[baseType(mediaType)]
	}
	return rd, rd != nil
}

// baseType returns the type whose reader reads mediaType where it has none of its own, or "".
func baseType(mediaType string) string {
	switch {
	case strings.HasSuffix(mediaType, "+json"), slices.Contains(jsonTypes, mediaType):
		return "application/json"
	case strings.HasSuffix(mediaType, "+xml"):
		return "application/xml"
	case slices.Contains(markdownTypes, mediaType): // its marks would be read as text
		return ""
	case strings.HasPrefix(mediaType, "text/"), strings.HasSuffix(mediaType, "+yaml"), slices.Contains(plainTypes, mediaType):
		return "text/plain"
	}
	return ""
}

// find returns the reader of mediaType, or a *pipeline.FetchError.
func (r *Readers) find(mediaType string) (*readerEntry, error) {
	if rd, ok := r.forType(mediaType); ok {
		return rd, nil
	}
	reason := fmt.Sprintf("there is no reader for pages of type %.80q", mediaType)
	switch {
	case mediaType == "application/pdf":
		reason += "; with fetch.pdf the program pdftotext reads them"
	case slices.Contains(markdownTypes, mediaType):
		reason += "; give markdown.New() of stages/fetch/readers/markdown to Config.Readers"
	}
	return nil, &pipeline.FetchError{Class: pipeline.FailType, Reason: reason}
}

// markdownTypes have a reader of their own, which the program gives.
var markdownTypes = []string{"text/markdown", "text/x-markdown"}

// jsonTypes are the types of JSON without the suffix +json.
var jsonTypes = []string{"application/json", "text/json", "text/x-json", "application/x-json"}

// quickReadLimit is how long a page may be read before it makes room for others.
const quickReadLimit = time.Second

// readInTurn waits until reader may read one more page, and calls read with a limit of Timeout. A page that
// a built-in reader has not read within quickReadLimit begins again among the slow ones, so that these delay
// each other and no other pages. If Timeout passes, the outcome of the page, whose base is given, says so. readInTurn
// returns nil if ctx ends first.
func (s *Stage) readInTurn(ctx context.Context, base flow.Outcome, reader *readerEntry, read func(context.Context) []flow.Outcome) []flow.Outcome {
	turns := reader.semaphore
	if reader.slowSemaphore != nil && s.cfg.Timeout > quickReadLimit {
		if outcomes := readWithSlot(ctx, turns, quickReadLimit, read); outcomes != nil || ctx.Err() != nil {
			return outcomes
		}
		turns = reader.slowSemaphore
	}
	if outcomes := readWithSlot(ctx, turns, s.cfg.Timeout, read); outcomes != nil || ctx.Err() != nil {
		return outcomes
	}
	return unreadable(base, &pipeline.FetchError{
		Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("reading the page took longer than %v", s.cfg.Timeout),
	})
}

// readWithSlot takes a slot of the semaphore turns and calls read with a limit. It returns nil if
// that passes, or if ctx ends first.
func readWithSlot(ctx context.Context, turns chan struct{}, limit time.Duration, read func(context.Context) []flow.Outcome) []flow.Outcome {
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return read(ctx)
}
