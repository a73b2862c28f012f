// Package txtest drives a Processor in tests: its Store keeps state, outputs and
// wakes in maps and changes them only when a transaction commits.
package txtest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// Store is what a transport would keep for one consumer group. It is not safe for concurrent use.
type Store struct {
	state      Memory // of the group under the empty name, and of those beside it
	wakes      *engine.Wakes
	emitted    []flow.Message
	writeCount int
}

// New returns an empty Store.
func New() *Store {
	return &Store{state: make(Memory), wakes: engine.NewWakes()}
}

// Beside makes what other keeps now that of the group of that name in the same lane, for transactions
// that look there.
func (s *Store) Beside(group string, other *Store) {
	maps.DeleteFunc(s.state, func(p engine.Place, _ map[string][]byte) bool { return p.Group == group })
	for p, values := range other.state {
		s.state[engine.Place{Group: group, Key: p.Key}] = maps.Clone(values)
	}
}

// SetBeside stores value under name as state of another group for key; a nil value deletes.
func (s *Store) SetBeside(group, key, name string, value []byte) {
	s.state.Set(engine.Place{Group: group, Key: key}, name, value)
}

// Handle gives m to p in a transaction of its own, which it commits where p returns nil.
func (s *Store) Handle(ctx context.Context, p flow.Processor, m flow.Message) error {
	tx := s.begin(m.Topic, engine.Work{Kind: engine.FromPost, Message: &m, Position: m.Position})
	if err := p.Process(flow.WithTx(ctx, tx), tx, m); err != nil {
		return err
	}
	tx.Commit()
	return nil
}

// Begin opens a transaction. One that is not committed leaves no trace.
func (s *Store) Begin() *Tx { return s.begin("", engine.Work{Kind: engine.FromPost}) }

func (s *Store) begin(topic string, w engine.Work) *Tx {
	return &Tx{engine.NewTx(s.state, oneLane{}, "", topic, w, nil), s}
}

// apply makes e visible.
func (s *Store) apply(e *engine.Effects[flow.Message]) {
	for w := range e.Writes.All() {
		s.writeCount++
		s.state.Set(w.Place, w.Name, w.Value)
	}
	for _, w := range e.Wakes {
		s.wakes.Set(w)
	}
	s.emitted = append(s.emitted, e.Out...)
}

// Value returns what is committed under name for key.
func (s *Store) Value(key, name string) ([]byte, bool) {
	v, ok, _ := s.state.Value(engine.Place{Key: key}, name) // memory does not fail
	return v, ok
}

// Names returns the names committed for key, in order.
func (s *Store) Names(key string) []string {
	return slices.Sorted(maps.Keys(s.state[engine.Place{Key: key}]))
}

// Keys returns the keys that have state, in order.
func (s *Store) Keys() []string {
	var keys []string
	for p := range s.state {
		if p.Group == "" { // not beside it
			keys = append(keys, p.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Take returns the messages emitted since the last call, in order.
func (s *Store) Take() []flow.Message {
	ms := s.emitted
	s.emitted = nil
	return ms
}

// Writes returns how many values were set or deleted since the last call.
func (s *Store) Writes() int {
	n := s.writeCount
	s.writeCount = 0
	return n
}

// Wake returns the wake that is set for key.
func (s *Store) Wake(key string) (engine.Wake, bool) {
	w := s.wakes.Get(key)
	return w, !w.At.IsZero()
}

// Due takes the wakes that are due at now and returns their messages, earliest first.
func (s *Store) Due(now time.Time) []flow.Message {
	var ms []flow.Message
	for {
		w, due, _ := s.wakes.Next(now)
		if !due {
			return ms
		}
		s.wakes.Set(engine.Wake{Key: w.Key})
		ms = append(ms, *flow.WakeMessage("", "", w.Key, w.At))
	}
}

// Start takes the wakes that come when a consumer starts at now: those with AtStart, and then
// those that are due.
func (s *Store) Start(now time.Time) []flow.Message {
	s.wakes.Start()
	return s.Due(now)
}
