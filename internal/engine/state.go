package engine

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
)

var (
	// ErrOver is the error of a transaction that is used after it ended.
	ErrOver      = errors.New("the transaction is over")
	errReadOnly  = errors.New("this state can only be read")
	errEmptyName = errors.New("a value of state needs a name")
)

// Place identifies the state that a group keeps for a key.
type Place struct{ Group, Key string }

// Reader reads committed state. It is safe for concurrent use.
type Reader interface {
	// Value returns the value of name, which the caller may change. Ok is false if there is none.
	Value(p Place, name string) (value []byte, ok bool, err error)
	// Values yields in order the names that begin with prefix. If the store fails, the last pair
	// has an Err.
	Values(p Place, prefix string) iter.Seq2[string, flow.Value]
	// Keys yields the keys of a lane behind after for which group keeps state, in order; an empty after means
	// all. If the store fails, it ends with an error.
	Keys(group, after string) iter.Seq2[string, error]
}

// View returns the committed state at p. It cannot be written to.
func View(r Reader, p Place) flow.State { return &state{reader: r, place: p} }

// Views yields keys of group, each with the committed state at it. If keys fail, the last pair is an
// empty key and a state whose reads fail.
func Views(group string, keys iter.Seq2[string, error], r Reader) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for key, err := range keys {
			if err != nil {
				yield("", flow.FailedState(err))
				return
			}
			if !yield(key, View(r, Place{group, key})) {
				return
			}
		}
	}
}

// overlay holds the writes of a transaction. It is safe for concurrent use.
type overlay struct {
	mu     sync.Mutex
	ended  bool
	writes Writes
}

// state is the state at a place within a transaction. Without one, if overlay is nil, it is
// read-only.
type state struct {
	reader  Reader
	overlay *overlay
	place   Place
}

func (s *state) Get(name string) (value []byte, ok bool, err error) {
	if o := s.overlay; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.ended {
			return nil, false, ErrOver
		}
		if v, ok := o.writes.Get(s.place, name); ok {
			return bytes.Clone(v), v != nil, nil
		}
	}
	return s.reader.Value(s.place, name)
}

func (s *state) Set(name string, value []byte) error {
	if value == nil {
		value = []byte{} // nil means deleted
	}
	return s.write(name, value)
}

func (s *state) Delete(name string) error { return s.write(name, nil) }

func (s *state) write(name string, value []byte) error {
	o := s.overlay
	if o == nil {
		return errReadOnly
	}
	if name == "" {
		return errEmptyName
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return ErrOver
	}
	o.writes.Set(s.place, name, value)
	return nil
}

func (s *state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		var changes map[string][]byte
		if o := s.overlay; o != nil {
			o.mu.Lock()
			over := o.ended
			changes = o.writes.Under(s.place, prefix, nil)
			o.mu.Unlock()
			if over {
				yield("", flow.Value{Err: ErrOver})
				return
			}
		}
		Over(changes, s.reader.Values(s.place, prefix))(yield)
	}
}

// Write is a change of state: the value of Name at Place is Value, or deleted if that is nil.
type Write struct {
	Place Place
	Name  string
	Value []byte
}

// Writes are changes of state that the store does not have yet, at most one for each place and name. The
// zero Writes has none. It is not safe for concurrent use.
type Writes struct {
	list    []Write                     // all of them, up to maxListWrites
	byPlace map[Place]map[string][]byte // all of them, if there are more
	bytes   int
	count   int
}

// maxListWrites is up to how many writes are in a list, which takes less than maps do.
const maxListWrites = 8

// Set stores value under name at p; a nil value deletes. It keeps value, without a copy.
func (w *Writes) Set(p Place, name string, value []byte) {
	if w.byPlace == nil {
		if i := w.indexInList(p, name); i >= 0 {
			w.bytes += len(value) - len(w.list[i].Value)
			w.list[i].Value = value
			return
		}
		if len(w.list) < maxListWrites {
			w.bytes += len(value)
			w.count++
			w.list = append(w.list, Write{p, name, value})
			return
		}
		w.byPlace = make(map[Place]map[string][]byte)
		for _, o := range w.list {
			w.putInMaps(o)
		}
		w.list = nil
	}
	old, replaced := w.byPlace[p][name]
	w.bytes += len(value) - len(old)
	if !replaced {
		w.count++
	}
	w.putInMaps(Write{p, name, value})
}

// putInMaps adds o to the maps.
func (w *Writes) putInMaps(o Write) {
	if w.byPlace[o.Place] == nil {
		w.byPlace[o.Place] = make(map[string][]byte)
	}
	w.byPlace[o.Place][o.Name] = o.Value
}

// indexInList returns the index of a write in the list, or -1.
func (w *Writes) indexInList(p Place, name string) int {
	return slices.IndexFunc(w.list, func(o Write) bool { return o.Name == name && o.Place == p })
}

// Get returns what was written under name at p: nil if it was deleted. Ok is false if nothing was
// written.
func (w *Writes) Get(p Place, name string) (value []byte, ok bool) {
	if w.byPlace != nil {
		value, ok = w.byPlace[p][name]
		return value, ok
	}
	if i := w.indexInList(p, name); i >= 0 {
		return w.list[i].Value, true
	}
	return nil, false
}

// Merge applies a copy of the writes of other to w.
func (w *Writes) Merge(other *Writes) {
	for o := range other.All() {
		w.Set(o.Place, o.Name, bytes.Clone(o.Value))
	}
}

// All yields the writes.
func (w *Writes) All() iter.Seq[Write] {
	return func(yield func(Write) bool) {
		for _, o := range w.list {
			if !yield(o) {
				return
			}
		}
		for p, names := range w.byPlace {
			for name, value := range names {
				if !yield(Write{p, name, value}) {
					return
				}
			}
		}
	}
}

// Empty reports whether nothing was written.
func (w *Writes) Empty() bool { return w.count == 0 }

// Len returns how many values were written.
func (w *Writes) Len() int { return w.count }

// Bytes is the size of the values.
func (w *Writes) Bytes() int { return w.bytes }

// Under adds the writes at p whose names begin with prefix to changes, and returns it. It makes
// changes if that is nil and there are any.
func (w *Writes) Under(p Place, prefix string, changes map[string][]byte) map[string][]byte {
	add := func(name string, value []byte) {
		if !strings.HasPrefix(name, prefix) {
			return
		}
		if changes == nil {
			changes = make(map[string][]byte)
		}
		changes[name] = value
	}
	for _, o := range w.list {
		if o.Place == p {
			add(o.Name, o.Value)
		}
	}
	for name, value := range w.byPlace[p] {
		add(name, value)
	}
	return changes
}

// Over yields the values of committed, which is in order of the names, as they are after changes.
func Over(changes map[string][]byte, committed iter.Seq2[string, flow.Value]) iter.Seq2[string, flow.Value] {
	if len(changes) == 0 {
		return committed
	}
	return func(yield func(string, flow.Value) bool) {
		changed := slices.Sorted(maps.Keys(changes))
		next := func() bool {
			name := changed[0]
			changed = changed[1:]
			return changes[name] == nil || yield(name, flow.Value{Bytes: bytes.Clone(changes[name])})
		}
		for name, v := range committed {
			if v.Err != nil {
				yield("", v)
				return
			}
			for len(changed) > 0 && changed[0] < name {
				if !next() {
					return
				}
			}
			if _, replaced := changes[name]; !replaced && !yield(name, v) {
				return
			}
		}
		for len(changed) > 0 {
			if !next() {
				return
			}
		}
	}
}
