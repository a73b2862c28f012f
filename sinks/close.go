package sinks

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vokter/vokter/pipeline"
)

// settings is what can be changed while Delivery works. Attempts hold them, so that their
// sinks are not closed under them.
type settings struct {
	sinks  map[string]pipeline.Sink
	policy Policy

	mu      sync.Mutex
	holders int
	// retired says that others replaced them; over are those of their sinks to close then.
	retired bool
	over    []io.Closer
}

// hold returns what live points to. The caller lets go of it.
func hold(live *atomic.Pointer[settings]) *settings {
	for {
		s := live.Load()
		s.mu.Lock()
		if !s.retired {
			s.holders++
			s.mu.Unlock()
			return s
		}
		s.mu.Unlock() // they were replaced in between
	}
}

// letGo ends a hold. The last one closes the sinks that are over.
func (s *settings) letGo(report func(error)) {
	s.mu.Lock()
	s.holders--
	s.mu.Unlock()
	s.closeOver(report)
}

// retire marks s as replaced by next, and closes the sinks that are not in there once
// nobody holds s.
func (s *settings) retire(next *settings, report func(error)) {
	kept := next.closers()
	s.mu.Lock()
	s.retired = true
	s.over = slices.DeleteFunc(s.closers(), func(c io.Closer) bool { return contains(kept, c) })
	s.mu.Unlock()
	s.closeOver(report)
}

// closeOver closes what is over if nobody holds s.
func (s *settings) closeOver(report func(error)) {
	s.mu.Lock()
	var over []io.Closer
	if s.holders == 0 {
		over, s.over = s.over, nil
	}
	s.mu.Unlock()
	for _, c := range over {
		if err := closeSink(c); err != nil {
			report(err)
		}
	}
}

// closeSink closes c; a panic there is an error.
func closeSink(c io.Closer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return c.Close()
}

// closers returns the sinks of s that can be closed, each once.
func (s *settings) closers() []io.Closer {
	var all []io.Closer
	for _, sink := range s.sinks {
		if c := closerOf(sink); c != nil && !contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// closerOf returns what closes sink or the sink that it wraps; nil: nothing does.
func closerOf(sink pipeline.Sink) io.Closer {
	if c, ok := sink.(io.Closer); ok {
		return c
	}
	if w, ok := sink.(interface{ Unwrap() pipeline.Sink }); ok {
		return closerOf(w.Unwrap())
	}
	return nil
}

// contains reports whether c is in all; what cannot be compared is not.
func contains(all []io.Closer, c io.Closer) bool {
	return reflect.ValueOf(c).Comparable() && slices.Contains(all, c)
}
