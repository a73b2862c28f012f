package sinks

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// settings is what can be changed while Delivery works.
type settings struct {
	sinks  map[string]pipeline.Sink
	policy Policy
}

// inForce points to the settings in force, and knows which ones attempts hold, so that no
// sink is closed under them.
type inForce struct {
	atomic.Pointer[settings]

	mu      sync.Mutex // held where the pointer changes, too
	holders map[*settings]int
}

// hold returns the settings in force. The caller lets go of them.
func (f *inForce) hold() *settings {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.Load()
	f.holders[s]++
	return s
}

// letGo ends a hold of s, and closes the sinks that are over with it.
func (f *inForce) letGo(s *settings, report func(error)) {
	f.mu.Lock()
	if f.holders[s]--; f.holders[s] == 0 {
		delete(f.holders, s)
	}
	over := f.over(s)
	f.mu.Unlock()
	closeAll(over, report)
}

// replace puts next in force. It returns what was before, and the sinks that are over with
// it.
func (f *inForce) replace(next *settings) (before *settings, over []io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.Swap(next)
	return before, f.over(before)
}

// over returns the sinks of s that are to be closed: those that neither the settings in
// force have nor any that an attempt holds. f.mu is held.
func (f *inForce) over(s *settings) []io.Closer {
	if s == nil || s == f.Load() || f.holders[s] > 0 {
		return nil
	}
	used := f.Load().closers()
	for held := range f.holders {
		used = append(used, held.closers()...)
	}
	return slices.DeleteFunc(s.closers(), func(c io.Closer) bool { return contains(used, c) })
}

func closeAll(over []io.Closer, report func(error)) {
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

// limiters hold attempts back until their sinks may be used. They live as long as the
// process: a rate is what a receiver bears, and stays when the configuration is read again,
// unless it is another one then.
type limiters struct {
	list map[string]*rate.Limiter // guarded by pool.mu
}

// reserve takes the next attempt of the sink called name. The reservation says in how long
// it may begin; nil: at once, since there is no rate.
func (l *limiters) reserve(name string, s pipeline.Sink, now time.Time) *rate.Reservation {
	perSecond, burst, ok := registry.RateOf(s)
	if !ok {
		return nil
	}
	lim := l.list[name]
	if lim == nil {
		if l.list == nil {
			l.list = make(map[string]*rate.Limiter)
		}
		lim = rate.NewLimiter(rate.Limit(perSecond), burst)
		l.list[name] = lim
	}
	return lim.ReserveN(now, 1)
}

// change forgets what was taken of the sinks of before that have another rate, or none, in
// now, and returns their names.
func (l *limiters) change(before, now map[string]pipeline.Sink) map[string]bool {
	changed := make(map[string]bool)
	for name, s := range before {
		wasPerSecond, wasBurst, was := registry.RateOf(s)
		perSecond, burst, is := registry.RateOf(now[name])
		if perSecond != wasPerSecond || burst != wasBurst || is != was {
			delete(l.list, name)
			changed[name] = true
		}
	}
	return changed
}
