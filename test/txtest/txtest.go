// Package txtest drives a Processor in tests: its Store keeps state, outputs and
// wakes in maps and changes them only when a transaction commits.
package txtest

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
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

// Tx is a transaction on a Store.
type Tx struct {
	*engine.Tx[flow.Message]
	store *Store
}

var _ flow.Tx = (*Tx)(nil)

// Commit makes all that the transaction did visible at once and then runs what OnCommit was given.
func (t *Tx) Commit() {
	var after []func()
	err := t.Tx.Commit(func(e *engine.Effects[flow.Message]) error {
		after = e.OnCommit
		t.store.apply(e)
		return nil
	})
	if err != nil {
		panic("txtest: " + err.Error())
	}
	for _, f := range after {
		f()
	}
}

// Synced reports whether Sync was called.
func (t *Tx) Synced() bool { return t.Effects().Sync }

// Emitted returns what was collected so far.
func (t *Tx) Emitted() []flow.Message { return t.Effects().Out }

// oneLane makes messages outputs of a store, which has one lane.
type oneLane struct{}

func (oneLane) Lanes() int { return 1 }

func (oneLane) Output(m flow.Message) flow.Message { return m }

func (oneLane) OutputTo(m flow.Message, _ int) flow.Message { return m }

func (oneLane) Logged(string) bool { return true }

func (oneLane) Fits(*engine.Effects[flow.Message]) error { return nil }

// Memory is committed state: values by place and name. It has no place without values.
type Memory map[engine.Place]map[string][]byte

var _ engine.Reader = Memory{}

// Value returns a copy of the value of name at p.
func (m Memory) Value(p engine.Place, name string) (value []byte, ok bool, err error) {
	v, ok := m[p][name]
	return bytes.Clone(v), ok, nil
}

// Values yields the names at p that begin with prefix, in order.
func (m Memory) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		for _, name := range slices.Sorted(maps.Keys(m[p])) {
			v, ok := m[p][name] // the loop may delete it
			if ok && strings.HasPrefix(name, prefix) && !yield(name, flow.Value{Bytes: bytes.Clone(v)}) {
				return
			}
		}
	}
}

// Keys yields the keys behind after for which group has values, in order.
func (m Memory) Keys(group, after string) iter.Seq2[string, error] {
	var keys []string
	for p := range m {
		if p.Group == group && (after == "" || p.Key > after) {
			keys = append(keys, p.Key)
		}
	}
	slices.Sort(keys)
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// Set stores a copy of value under name at p; a nil value deletes.
func (m Memory) Set(p engine.Place, name string, value []byte) {
	if value == nil {
		if delete(m[p], name); len(m[p]) == 0 {
			delete(m, p)
		}
		return
	}
	if m[p] == nil {
		m[p] = make(map[string][]byte)
	}
	m[p][name] = bytes.Clone(value)
}

// Clone returns a copy that can be written to.
func (m Memory) Clone() Memory {
	c := make(Memory, len(m))
	for p, values := range m {
		c[p] = maps.Clone(values)
	}
	return c
}
