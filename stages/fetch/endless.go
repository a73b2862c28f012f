package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
)

const (
	// overdueGrace is how long a reading may go on after its context ended before its slot goes to another.
	overdueGrace = time.Second
	// maxEndless is how many documents whose reading did not end are remembered after it ended.
	maxEndless = 1024
)

// endless knows the readings that did not end with their context. A library may look at it too rarely, or never, and
// nothing ends a goroutine. A document is not read while an earlier reading of it goes on, and after one that took
// longer than its time it is not read again until its settings or its page change. It is safe for concurrent use.
type endless struct {
	running atomic.Int64 // readings that gave their slot back and go on
	known   atomic.Int64 // the size of over

	mu   sync.Mutex
	over map[documentKey]*overdueReading
}

// documentKey is a document: the hash of its address and its view.
type documentKey [sha256.Size]byte

// overdueReading is a reading that did not end with its context.
type overdueReading struct {
	body  [sha256.Size]byte // the hash of the page
	ended chan struct{}     // closed when it ends
	// endless says that it did not end within the time of a reading.
	endless bool
}

func newEndless() *endless { return &endless{over: make(map[documentKey]*overdueReading)} }

// Stuck reports how many readings of pages go on after their time, and whether that are as many as pages are
// read at once.
func (r *Readers) Stuck() (n int, all bool) {
	n = int(r.endless.running.Load())
	return n, n >= runtime.GOMAXPROCS(0)
}

// endingReader is a Reader whose Read ends soon after its context.
type endingReader struct {
	pipeline.Reader
	endless *endless
}

// Extractor names the rules of the reader.
func (r endingReader) Extractor() string { return extractorName(r.Reader) }

// Read reads raw as Reader does, and returns the error of ctx if that does not end in time.
func (r endingReader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	if err := ctx.Err(); err != nil {
		return pipeline.Text{}, err
	}
	if r.endless.known.Load() > 0 {
		if err := r.endless.wait(ctx, keyOfDocument(raw, view), raw); err != nil {
			return pipeline.Text{}, err
		}
	}
	type result struct {
		text pipeline.Text
		err  error
	}
	done := make(chan result, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var res result
		res.err = recoverPanic(func() (err error) { res.text, err = r.Reader.Read(ctx, raw, view); return err })
		done <- res
	}()
	select {
	case res := <-done:
		return res.text, res.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(overdueGrace)
	defer grace.Stop()
	select {
	case res := <-done:
		return res.text, res.err
	case <-grace.C:
	}
	r.endless.add(keyOfDocument(raw, view), raw, ended)
	return pipeline.Text{}, ctx.Err()
}

// keyOfDocument returns the key of the document that view makes of raw.
func keyOfDocument(raw pipeline.Raw, view pipeline.View) documentKey {
	b, _ := json.Marshal(view) // it came from JSON
	return sha256.Sum256(append(append([]byte(raw.URL), 0), b...))
}

// add records a reading of raw that goes on until ended is closed.
func (e *endless) add(key documentKey, raw pipeline.Raw, ended chan struct{}) {
	o := &overdueReading{body: sha256.Sum256(raw.Body), ended: ended}
	e.mu.Lock()
	e.over[key] = o
	e.known.Store(int64(len(e.over)))
	e.mu.Unlock()
	e.running.Add(1)
	go func() {
		<-ended
		e.running.Add(-1)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.over[key] == o && (!o.endless || len(e.over) > maxEndless) {
			e.forget(key)
		}
	}()
}

// wait waits until no earlier reading of the document goes on. It returns why the document is not read, or nil.
func (e *endless) wait(ctx context.Context, key documentKey, raw pipeline.Raw) error {
	e.mu.Lock()
	o := e.over[key]
	known := o != nil && o.endless
	e.mu.Unlock()
	if o == nil {
		return nil
	}
	if !known {
		select {
		case <-o.ended:
			return nil
		case <-ctx.Done():
			e.mu.Lock()
			o.endless = true
			e.mu.Unlock()
			return endlessError("the reading of the page did not end in time")
		}
	}
	select {
	case <-o.ended:
	default:
		return endlessError("an earlier reading of the page with these settings has not ended")
	}
	if o.body == sha256.Sum256(raw.Body) {
		return endlessError("the reading of this page with these settings did not end in time before")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(key)
	return nil
}

// forget removes what is known of a document. The caller holds e.mu.
func (e *endless) forget(key documentKey) {
	delete(e.over, key)
	e.known.Store(int64(len(e.over)))
}

// endlessError is the failed check of a document whose reading does not end.
func endlessError(what string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf(
		"%s; it is read again when its page or its settings change: name what is watched with a simpler selector", what)}
}
