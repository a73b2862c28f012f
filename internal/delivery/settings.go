package delivery

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

// settings can be replaced while Delivery runs.
type settings struct {
	sinks  map[string]pipeline.Sink
	policy Policy
}

// liveSettings points to the current settings. It counts which settings running attempts use,
// so that a sink is closed only when no attempt uses it.
type liveSettings struct {
	atomic.Pointer[settings]

	mu    sync.Mutex // also held when the pointer changes
	users map[*settings]int
}

// acquire returns the current settings. The caller must release them.
func (l *liveSettings) acquire() *settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.Load()
	l.users[s]++
	return s
}

// release ends a use of s, and closes the sinks that nothing uses any more.
func (l *liveSettings) release(s *settings, report func(error)) {
	l.mu.Lock()
	if l.users[s]--; l.users[s] == 0 {
		delete(l.users, s)
	}
	unused := l.unused(s)
	l.mu.Unlock()
	closeAll(unused, report)
}

// replace makes next the current settings. It returns those before, and those of their sinks
// that nothing uses any more.
func (l *liveSettings) replace(next *settings) (before *settings, unused []io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.Swap(next)
	return before, l.unused(before)
}

// unused returns the sinks of s to close: those that are neither in the current settings nor
// in any that an attempt uses. l.mu is held.
func (l *liveSettings) unused(s *settings) []io.Closer {
	if s == nil || s == l.Load() || l.users[s] > 0 {
		return nil
	}
	used := l.Load().closers()
	for other := range l.users {
		used = append(used, other.closers()...)
	}
	return slices.DeleteFunc(s.closers(), func(c io.Closer) bool { return containsCloser(used, c) })
}

func closeAll(closers []io.Closer, report func(error)) {
	for _, c := range closers {
		if err := closeSink(c); err != nil {
			report(err)
		}
	}
}

// closeSink closes c. A panic counts as an error.
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
		if c, ok := registry.CloserOf(sink); ok && !containsCloser(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// containsCloser reports whether c is in all. Types that cannot be compared never are.
func containsCloser(all []io.Closer, c io.Closer) bool {
	return reflect.ValueOf(c).Comparable() && slices.Contains(all, c)
}

// limiters keep attempts to the rates of their sinks. A reload keeps a limiter, unless its
// rate changes.
type limiters struct {
	byName map[string]*rate.Limiter // guarded by pool.mu
}

// reserve takes a share of the rate of the sink name. The reservation says when the attempt
// may begin; nil means at once, since there is no rate.
func (l *limiters) reserve(name string, s pipeline.Sink, now time.Time) *rate.Reservation {
	perSecond, burst, ok := registry.RateOf(s)
	if !ok {
		return nil
	}
	lim := l.byName[name]
	if lim == nil {
		if l.byName == nil {
			l.byName = make(map[string]*rate.Limiter)
		}
		lim = rate.NewLimiter(rate.Limit(perSecond), burst)
		l.byName[name] = lim
	}
	return lim.ReserveN(now, 1)
}

// dropChanged drops the limiters of the sinks whose rate in now is not that in before, and returns
// their names.
func (l *limiters) dropChanged(before, now map[string]pipeline.Sink) map[string]bool {
	changed := make(map[string]bool)
	for name, s := range before {
		wasPerSecond, wasBurst, was := registry.RateOf(s)
		perSecond, burst, is := registry.RateOf(now[name])
		if perSecond != wasPerSecond || burst != wasBurst || is != was {
			delete(l.byName, name)
			changed[name] = true
		}
	}
	return changed
}
