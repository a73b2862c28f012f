package kafka

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// State is what group keeps for key, as far as it is acknowledged; it cannot be written to.
// Its reads fail where another process owns the lane of key.
func (t *Transport) State(group, key string) flow.State {
	if t.ready.Load() {
		if n := t.tenure(client.PartitionOf(key, t.lanes)); n != nil {
			return &state{ten: n, place: place{group, key}}
		}
	}
	return flow.FailedState(errNotOwned)
}

// States yields the keys for which group keeps state in the lanes that this process owns, in
// no order that means anything, each with its state as far as it is acknowledged. A store's
// failure ends it with an empty key and a state whose reads fail.
func (t *Transport) States(group string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for lane := range t.owned {
			n := t.tenure(lane)
			if n == nil {
				continue
			}
			for key, st := range n.states(group) {
				if !yield(key, st) {
					return
				}
			}
		}
	}
}

// states yields what group keeps in n's lane.
func (n *tenure) states(group string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		fresh := n.merged(group)
		for key, err := range n.t.cache.LaneStateKeys(group, n.lane) {
			if err != nil {
				yield("", flow.FailedState(err))
				return
			}
			st := &state{ten: n, place: place{group, key}}
			if fresh[key] {
				delete(fresh, key)
				if !some(st) {
					continue
				}
			}
			if !yield(key, st) {
				return
			}
		}
		for key := range fresh {
			if st := (&state{ten: n, place: place{group, key}}); some(st) && !yield(key, st) {
				return
			}
		}
	}
}

// merged returns the keys of group to whose states something was written that is not in the
// copy of the lane yet.
func (n *tenure) merged(group string) map[string]bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	keys := make(map[string]bool)
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
	return keys
}

// some reports whether st holds anything.
func some(st flow.State) bool {
	for range st.Scan("") {
		return true
	}
	return false
}

// BackupTo fails: the brokers keep the state.
func (t *Transport) BackupTo(io.Writer) error {
	return fmt.Errorf("%w: Kafka keeps the state, and there is no store here to copy; back up the brokers, or use state export", errors.ErrUnsupported)
}
