package sim

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// tx is the transaction of one message.
type tx struct {
	t     *transport
	l     *lane
	c     consumerID
	key   string
	wrote map[string]*[]byte // by name; nil is deleted
	out   []laned
	woken map[string]wake // by key; the zero wake is taken back
	after []func()
	synced,
	foreign bool
}

var _ flow.Tx = (*tx)(nil)

// begin opens a transaction for a message of key at consumer c.
func (t *transport) begin(l *lane, c consumerID, key string) *tx {
	return &tx{t: t, l: l, c: c, key: key, wrote: make(map[string]*[]byte), woken: make(map[string]wake)}
}

func (x *tx) State(key string) flow.State {
	if key != x.key {
		x.foreign = true
	}
	return &txState{x, x.l.state[place{x.c.group, key}]}
}

func (x *tx) Emit(m flow.Message) { x.out = append(x.out, laned{m, x.t.lane(m.Key)}) }
func (x *tx) OnCommit(f func())   { x.after = append(x.after, f) }
func (x *tx) Sync()               { x.synced = true }
func (x *tx) Fits() error         { return nil }

// Message and Reset are not called: each attempt has a transaction of its own, and its message
// beside it.
func (x *tx) Message() (flow.Message, error) { panic("sim: Message is not used") }
func (x *tx) Reset()                         { panic("sim: Reset is not used") }

func (x *tx) EmitAll(m flow.Message) {
	id := m.ID
	for lane := range x.t.lanes {
		m.ID, m.Key = flow.DeriveID("lane", id, strconv.Itoa(lane)), ""
		x.out = append(x.out, laned{m, lane})
	}
}

func (x *tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for _, key := range x.l.keys(group) {
			if !yield(key, &txState{committed: x.l.state[place{group, key}]}) {
				return
			}
		}
	}
}

func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	if key != x.key {
		x.foreign = true
	}
	x.woken[key] = wake{at: at.UTC(), atStart: !at.IsZero() && slices.Contains(opts, flow.AtStart)}
}

// emitted returns what x emits.
func (x *tx) emitted() []flow.Message {
	var ms []flow.Message
	for _, o := range x.out {
		ms = append(ms, o.Message)
	}
	return ms
}

// txState is a state as a transaction sees it; x is nil where it can only be read.
type txState struct {
	x         *tx
	committed map[string][]byte
}

func (s *txState) wrote() map[string]*[]byte {
	if s.x == nil {
		return nil
	}
	return s.x.wrote
}

func (s *txState) Get(name string) ([]byte, bool, error) {
	if v, ok := s.wrote()[name]; ok {
		if v == nil {
			return nil, false, nil
		}
		return slices.Clone(*v), true, nil
	}
	v, ok := s.committed[name]
	return slices.Clone(v), ok, nil
}

func (s *txState) Set(name string, value []byte) error {
	if name == "" || s.x == nil {
		return fmt.Errorf("state: %q cannot be set", name)
	}
	v := slices.Clone(value)
	s.x.wrote[name] = &v
	return nil
}

func (s *txState) Delete(name string) error {
	if s.x == nil {
		return fmt.Errorf("state: %q cannot be deleted", name)
	}
	s.x.wrote[name] = nil
	return nil
}

func (s *txState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	names := make(map[string]bool)
	for n := range s.committed {
		names[n] = true
	}
	for n, v := range s.wrote() {
		names[n] = v != nil
	}
	return func(yield func(string, flow.Value) bool) {
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if !names[n] || !strings.HasPrefix(n, prefix) {
				continue
			}
			v, _, _ := s.Get(n)
			if !yield(n, flow.Value{Bytes: v}) {
				return
			}
		}
	}
}
