package kafka

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/store"
)

var (
	errReadOnly = errors.New("kafka: this state can only be read")
	errNotOwned = errors.New("kafka: another process owns the lane of this state; ask that one")
)

// state is the state of a group for a key, within a transaction. Without one, if x is nil, it is
// read-only.
type state struct {
	lease *lease
	x     *tx
	place place
}

var _ flow.State = (*state)(nil)

// Get looks up the writes of the transaction, then merged writes that are not in the copy of the
// lane yet, then the copy.
func (s *state) Get(name string) (value []byte, ok bool, err error) {
	if s.x != nil {
		s.x.mu.Lock()
		defer s.x.mu.Unlock()
		if s.x.over {
			return nil, false, errOver
		}
		if v, ok := s.x.layer.get(s.place, name); ok {
			return append([]byte(nil), v...), v != nil, nil
		}
	}
	return s.lease.get(s.place, name)
}

func (s *state) Set(name string, value []byte) error {
	return s.write(name, append([]byte{}, value...))
}

func (s *state) Delete(name string) error { return s.write(name, nil) }

func (s *state) write(name string, value []byte) error {
	if s.x == nil {
		return errReadOnly
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	s.x.layer.set(s.place, name, value)
	return nil
}

// Scan reads all values before it yields the first, so that the loop may access the state.
func (s *state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		values, err := s.lease.scan(s.place, prefix)
		if err == nil && s.x != nil {
			s.x.mu.Lock()
			if s.x.over {
				err = errOver
			}
			s.x.layer.over(s.place, prefix, values)
			s.x.mu.Unlock()
		}
		if err != nil {
			yield("", flow.Value{Err: err})
			return
		}
		for _, name := range sorted(values) {
			if !yield(name, flow.Value{Bytes: append([]byte{}, values[name]...)}) {
				return
			}
		}
	}
}

// BackupTo fails, because the state is kept by the brokers.
func (t *Transport) BackupTo(io.Writer) error {
	return fmt.Errorf("%w: Kafka keeps the state, and there is no store here to copy; back up the brokers, or use state export", errors.ErrUnsupported)
}

// State returns the acknowledged state of group for key, read-only. Its reads fail if another
// process owns the lane of key.
func (t *Transport) State(group, key string) flow.State {
	if t.ready.Load() {
		if n := t.lease(client.PartitionOf(key, t.lanes)); n != nil {
			return &state{lease: n, place: place{group, key}}
		}
	}
	return flow.FailedState(errNotOwned)
}

// States yields the keys behind after for which group has state in the lanes of this process, each
// with its acknowledged state, in order. A failure of the store ends it with an empty key and a
// state whose reads fail.
func (t *Transport) States(group, after string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		leases := make(map[int]*lease)
		for lane := range t.owned {
			if n := t.lease(lane); n != nil {
				leases[lane] = n
			}
		}
		t.statesOf(leases, group, after)(yield)
	}
}

// statesOf is States of the lanes of leases.
func (t *Transport) statesOf(leases map[int]*lease, group, after string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		var lists []iter.Seq2[string, error]
		fresh := make(map[string]bool) // with writes that are not in the copies of the lanes yet
		for lane, n := range leases {
			n.merged(group, fresh)
			lists = append(lists, t.cache.LaneStateKeys(group, lane, after))
		}
		lists = append(lists, func(yield func(string, error) bool) {
			for _, key := range slices.Sorted(maps.Keys(fresh)) {
				if (after == "" || key > after) && !yield(key, nil) {
					return
				}
			}
		})
		for key, err := range store.MergeKeys(lists...) {
			if err != nil {
				yield("", flow.FailedState(err))
				return
			}
			st := &state{lease: leases[client.PartitionOf(key, t.lanes)], place: place{group, key}}
			if fresh[key] && !some(st) {
				continue
			}
			if !yield(key, st) {
				return
			}
		}
	}
}

// merged adds the keys of group with writes that are not in the copy of the lane yet to keys.
func (n *lease) merged(group string, keys map[string]bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, b := range []*batch{n.open, n.flight} {
		if b == nil {
			continue
		}
		for p := range b.layer.states {
			if p.group == group {
				keys[p.key] = true
			}
		}
	}
}

// some reports whether st has any value.
func some(st flow.State) bool {
	for range st.Scan("") {
		return true
	}
	return false
}

// get looks up merged writes, then the copy of the lane.
func (n *lease) get(p place, name string) (value []byte, ok bool, err error) {
	n.mu.RLock()
	for _, b := range []*batch{n.open, n.flight} {
		if b == nil {
			continue
		}
		if v, ok := b.layer.get(p, name); ok {
			n.mu.RUnlock()
			return append([]byte{}, v...), v != nil, nil
		}
	}
	n.mu.RUnlock()
	return n.t.cache.GetState(nil, p.group, n.lane, p.key, name)
}

// scan returns the values of p whose names begin with prefix; nil values are deleted.
func (n *lease) scan(p place, prefix string) (map[string][]byte, error) {
	merged := make(map[string][]byte)
	n.mu.RLock()
	if n.flight != nil {
		n.flight.layer.over(p, prefix, merged)
	}
	n.open.layer.over(p, prefix, merged)
	n.mu.RUnlock()
	err := n.t.cache.ScanState(nil, p.group, n.lane, p.key, prefix, func(name string, value []byte) bool {
		if _, ok := merged[name]; !ok {
			merged[name] = value
		}
		return true
	})
	return merged, err
}

// place identifies the state of a group for a key.
type place struct{ group, key string }

// layer is an overlay of writes that are not in the copy of a lane yet. A nil value is a
// tombstone. A layer is not safe for concurrent use.
type layer struct {
	states map[place]map[string][]byte
	bytes  int // size of the values
}

// set stores value under name of p; a nil value deletes.
func (l *layer) set(p place, name string, value []byte) {
	if l.states == nil {
		l.states = make(map[place]map[string][]byte)
	}
	names := l.states[p]
	if names == nil {
		names = make(map[string][]byte)
		l.states[p] = names
	}
	l.bytes += len(value) - len(names[name])
	names[name] = value
}

// get returns the value of name of p; ok is false if the layer has none.
func (l *layer) get(p place, name string) (value []byte, ok bool) {
	value, ok = l.states[p][name]
	return value, ok
}

// merge applies the writes of other to l.
func (l *layer) merge(other *layer) {
	for p, names := range other.states {
		for name, value := range names {
			l.set(p, name, value)
		}
	}
}

// over applies the writes of p whose names begin with prefix to values.
func (l *layer) over(p place, prefix string, values map[string][]byte) {
	for name, value := range l.states[p] {
		if strings.HasPrefix(name, prefix) {
			values[name] = value
		}
	}
}

// sorted returns the names of the values that are not deleted, in order.
func sorted(values map[string][]byte) []string {
	maps.DeleteFunc(values, func(_ string, v []byte) bool { return v == nil })
	return slices.Sorted(maps.Keys(values))
}
