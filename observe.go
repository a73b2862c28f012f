package vokter

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vokter/vokter/pipeline/flow"
)

// Observe calls o with what the stages of this process do, after the commit, until the returned
// function is called. It is called from many goroutines and must not block. Calls that have begun
// may end after that. A crash loses observations.
func (r *Router) Observe(o flow.Observer) (stop func()) { return r.observers.add(o) }

// recordObservation counts ob and passes it on.
func (r *Router) recordObservation(ob flow.Observation) {
	r.tally.Note(ob)
	r.meter.Note(ob)
	r.recent.Note(ob)
	if all := r.observers.all.Load(); all != nil {
		for _, o := range *all {
			o.Note(ob)
		}
	}
}

// observers is a set of observers that is read without a lock.
type observers struct {
	mu    sync.Mutex
	byKey map[*byte]flow.Observer
	all   atomic.Pointer[[]flow.Observer]
}

func (s *observers) add(o flow.Observer) (remove func()) {
	key := new(byte)
	s.update(func() { s.byKey[key] = o })
	return func() { s.update(func() { delete(s.byKey, key) }) }
}

func (s *observers) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = make(map[*byte]flow.Observer)
	}
	f()
	all := slices.Collect(maps.Values(s.byKey))
	s.all.Store(&all)
}
