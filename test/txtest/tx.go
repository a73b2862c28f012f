package txtest

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// Tx is a transaction on a Store.
type Tx struct {
	store   *Store
	message flow.Message
	writes  map[string]map[string]write
	wakes   map[string]Wake
	emitted []flow.Message
	after   []func()
	synced  bool
}

// write is a new value, or a deletion.
type write struct {
	value   []byte
	deleted bool
}

var _ flow.Tx = (*Tx)(nil)

// Commit makes all that the transaction did visible at once and then runs what
// OnCommit was given.
func (t *Tx) Commit() {
	t.commit()
	for _, f := range t.after {
		f()
	}
}

func (t *Tx) commit() {
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, ws := range t.writes {
		state := s.states[key]
		if state == nil {
			state = make(map[string][]byte)
			s.states[key] = state
		}
		for name, w := range ws {
			s.writes++
			if w.deleted {
				delete(state, name)
			} else {
				state[name] = w.value
			}
		}
		if len(state) == 0 {
			delete(s.states, key)
		}
	}
	for key, w := range t.wakes {
		if w.At.IsZero() {
			delete(s.wakes, key)
		} else {
			s.wakes[key] = w
		}
	}
	s.emitted = append(s.emitted, t.emitted...)
}

// Reset forgets all that was written, emitted and scheduled.
func (t *Tx) Reset() {
	t.writes, t.wakes = make(map[string]map[string]write), make(map[string]Wake)
	t.emitted, t.after, t.synced = nil, nil, false
}

// Message returns the message that Store.Handle was given; it is empty after Store.Begin.
func (t *Tx) Message() (flow.Message, error) { return t.message, nil }

// Fits returns nil: a Store takes everything.
func (t *Tx) Fits() error { return nil }

// Sync records that the commit must reach the disk; see Synced.
func (t *Tx) Sync() { t.synced = true }

// Synced reports whether Sync was called.
func (t *Tx) Synced() bool { return t.synced }

// Emit collects m.
func (t *Tx) Emit(m flow.Message) { t.emitted = append(t.emitted, m) }

// EmitAll collects one copy of m: a Store has one lane.
func (t *Tx) EmitAll(m flow.Message) {
	m.ID, m.Key = flow.DeriveID("lane", m.ID, "0"), ""
	t.Emit(m)
}

// Neighbours yields the keys of the group named, in order, see Store.Beside.
func (t *Tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		other := t.store.group(group)
		if other == nil {
			return
		}
		view := other.Begin()
		for _, key := range other.Keys() {
			if !yield(key, view.State(key)) {
				return
			}
		}
	}
}

// Emitted returns what was collected so far.
func (t *Tx) Emitted() []flow.Message { return t.emitted }

// WakeAt sets the wake of key.
func (t *Tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	t.wakes[key] = Wake{At: at, AtStart: slices.Contains(opts, flow.AtStart)}
}

// OnCommit runs f after the commit.
func (t *Tx) OnCommit(f func()) { t.after = append(t.after, f) }

// State returns the state of key as this transaction sees it.
func (t *Tx) State(key string) flow.State { return state{t, key} }

type state struct {
	tx  *Tx
	key string
}

func (s state) Get(name string) ([]byte, bool, error) {
	if w, ok := s.tx.writes[s.key][name]; ok {
		return bytes.Clone(w.value), !w.deleted, nil
	}
	v, ok := s.tx.store.Value(s.key, name)
	return v, ok, nil
}

func (s state) Set(name string, value []byte) error { return s.put(name, write{value: value}) }

func (s state) Delete(name string) error { return s.put(name, write{deleted: true}) }

func (s state) put(name string, w write) error {
	if name == "" {
		return errors.New("txtest: empty name")
	}
	if s.tx.writes[s.key] == nil {
		s.tx.writes[s.key] = make(map[string]write)
	}
	s.tx.writes[s.key][name] = w
	return nil
}

func (s state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		names := make(map[string]bool)
		for _, n := range s.tx.store.Names(s.key) {
			names[n] = true
		}
		for n, w := range s.tx.writes[s.key] {
			names[n] = !w.deleted
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if !names[n] || !strings.HasPrefix(n, prefix) {
				continue
			}
			v, _, err := s.Get(n)
			if !yield(n, flow.Value{Bytes: v, Err: err}) {
				return
			}
		}
	}
}
