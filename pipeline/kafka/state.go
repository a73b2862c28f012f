package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var errNotOwned = errors.New("kafka: another process owns the lane of this state; ask that one")

// BackupTo fails, because the state is kept by the brokers.
func (t *Transport) BackupTo(io.Writer) error {
	return fmt.Errorf("%w: Kafka keeps the state, and there is no store here to copy; mirror the topics, and save the subscriptions with vokter-stream export", errors.ErrUnsupported)
}

// State returns the acknowledged state of group for key, read-only. Its reads fail if another
// process owns the lane of key.
func (t *Transport) State(group, key string) flow.State {
	if t.ready.Load() {
		return engine.View(laneStates{t}, engine.Place{Group: group, Key: key})
	}
	return flow.FailedState(errNotOwned)
}

// States yields the keys behind after for which group has state in the lanes of this process, each
// with its acknowledged state, in order. A failure of the store ends it with an empty key and a
// state whose reads fail.
func (t *Transport) States(group, after string) iter.Seq2[string, flow.State] {
	return engine.Views(group, laneStates{t}.Keys(group, after), laneStates{t})
}

// laneStates reads the state of the lanes of this process.
type laneStates struct{ transport *Transport }

var (
	_ engine.Reader = laneStates{}
	_ engine.Reader = (*lease)(nil)
)

// leaseOf returns the lease that has the state at p, or nil. A message without a key is in the lane of its
// ID, so any lane may have state for the empty key.
func (l laneStates) leaseOf(p engine.Place) *lease {
	if p.Key == "" {
		for lane := range l.transport.slots {
			if n := l.transport.lease(lane); n != nil && n.hasState(p) {
				return n
			}
		}
	}
	return l.transport.lease(client.PartitionOf(p.Key, l.transport.lanes))
}

func (l laneStates) Value(p engine.Place, name string) (value []byte, ok bool, err error) {
	if n := l.leaseOf(p); n != nil {
		return n.Value(p, name)
	}
	return nil, false, errNotOwned
}

func (l laneStates) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	if n := l.leaseOf(p); n != nil {
		return n.Values(p, prefix)
	}
	return flow.FailedState(errNotOwned).Scan(prefix)
}

func (l laneStates) Keys(group, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var lists []iter.Seq2[string, error]
		for lane := range l.transport.slots {
			if n := l.transport.lease(lane); n != nil {
				lists = append(lists, n.Keys(group, after))
			}
		}
		store.MergeKeys(lists...)(yield)
	}
}

// Value looks up merged writes that are not in the copy of the lane yet, then the copy.
func (n *lease) Value(p engine.Place, name string) (value []byte, ok bool, err error) {
	n.mu.RLock()
	for _, b := range []*batch{n.open, n.inFlight} {
		if b == nil {
			continue
		}
		if v, ok := b.writes.Get(p, name); ok {
			n.mu.RUnlock()
			return bytes.Clone(v), v != nil, nil
		}
	}
	n.mu.RUnlock()
	return n.transport.stateCopy.GetState(p.Group, n.lane, p.Key, name)
}

// Values yields the values at p as Value finds them.
func (n *lease) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		var changes map[string][]byte
		n.mu.RLock()
		if n.inFlight != nil {
			changes = n.inFlight.writes.Under(p, prefix, changes)
		}
		changes = n.open.writes.Under(p, prefix, changes)
		n.mu.RUnlock()
		engine.Over(changes, n.transport.stateCopy.ScanState(p.Group, n.lane, p.Key, prefix))(yield)
	}
}

// Keys yields the keys behind after for which group has state in the lane, in order.
func (n *lease) Keys(group, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		merged := n.uncopiedKeys(group)
		fresh := func(yield func(string, error) bool) {
			for _, key := range slices.Sorted(maps.Keys(merged)) {
				if (after == "" || key > after) && !yield(key, nil) {
					return
				}
			}
		}
		for key, err := range store.MergeKeys(
			n.transport.stateCopy.LaneStateKeys(group, n.lane, flow.KeyName(n.transport.declaredTopics(), group), after),
			fresh,
		) {
			if merged[key] && !n.hasState(engine.Place{Group: group, Key: key}) {
				continue
			}
			if !yield(key, err) {
				return
			}
		}
	}
}

// uncopiedKeys returns the keys of group with writes that are not in the copy of the lane yet.
func (n *lease) uncopiedKeys(group string) map[string]bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	keys := make(map[string]bool)
	for _, b := range []*batch{n.open, n.inFlight} {
		if b == nil {
			continue
		}
		for w := range b.writes.All() {
			if w.Place.Group == group {
				keys[w.Place.Key] = true
			}
		}
	}
	return keys
}

// hasState reports whether there is any value at p.
func (n *lease) hasState(p engine.Place) bool {
	for range n.Values(p, "") {
		return true
	}
	return false
}
