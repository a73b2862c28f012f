package local

import (
	"errors"
	"iter"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

var errOver = errors.New("local: the transaction is over")

// tx is the transaction of one attempt to handle one message.
type tx struct {
	t   *Transport
	cur *cursor
	w   work

	mu       sync.Mutex
	over     bool
	batch    *store.Batch
	out      []output
	wakes    []wakeChange
	onCommit []func()
	sync     bool
	// scans counts the iterations in progress. stale are the batches that they keep open.
	scans int
	stale []*store.Batch
	// The commit trims the log of its lane from trimFrom to before trimTo.
	trimFrom, trimTo uint64
}

// output is a message with the lane that it goes to.
type output struct {
	lane *lane
	rec  store.Record
	size int
}

// logged reports whether o is stored.
func (o output) logged() bool { return !o.lane.topic.volatile }

// wakeChange is the change of a transaction to the wake of a key.
type wakeChange struct {
	mill.Wake
	cur *cursor
}

var _ flow.Tx = (*tx)(nil)

func newTx(cur *cursor, w work) *tx { return &tx{t: cur.c.t, cur: cur, w: w} }

// State returns the state that the message's group keeps for key.
func (x *tx) State(key string) flow.State {
	return &state{t: x.t, x: x, group: x.cur.c.group, lane: x.t.laneOf(key), key: key}
}

// Emit collects m.
func (x *tx) Emit(m flow.Message) { x.collect(x.t.output(m)) }

// collect adds messages to publish with the commit. It returns false if the transaction has
// ended.
func (x *tx) collect(o ...output) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.out = append(x.out, o...)
	return true
}

// WakeAt collects a change of key's wake.
func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	w := wakeChange{Wake: mill.Wake{Key: key, At: at}, cur: x.cur.c.cursors[x.t.laneOf(key)]}
	for _, o := range opts {
		w.AtStart = w.AtStart || o == flow.AtStart
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	for i := range x.wakes {
		if x.wakes[i].Key == key {
			x.wakes[i] = w
			return
		}
	}
	x.wakes = append(x.wakes, w)
}

// OnCommit collects f.
func (x *tx) OnCommit(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.onCommit = append(x.onCommit, f)
	}
}

// Sync makes the commit wait for the disk.
func (x *tx) Sync() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sync = true
}

// Fits returns nil: the store takes values of any size.
func (x *tx) Fits() error { return nil }

// position returns the position of the message in its log.
func (x *tx) position() string {
	if x.w.kind != fromLog || x.cur.place == "" {
		return ""
	}
	return x.cur.place + strconv.FormatUint(x.w.entry.Offset, 10)
}

// Message returns the message that is handled.
func (x *tx) Message() (flow.Message, error) {
	topic, p := x.cur.lane.topic.name, x.w.message
	switch {
	case p == nil:
		rec := x.w.entry.Record
		return flow.Received(topic, rec.ID, x.position(), rec.Meta, rec.Payload)
	case p.ID == "" || p.Type == "":
		return flow.Received(topic, p.ID, x.position(), p.Metadata(), p.Body)
	}
	m := *p
	m.Header = maps.Clone(p.Header)
	m.Topic, m.Position = topic, x.position()
	return m, nil
}

// Reset drops all that the attempt did so far.
func (x *tx) Reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop()
}

func (x *tx) drop() {
	if x.batch != nil {
		x.stale = append(x.stale, x.batch)
		x.closeStale()
	}
	x.batch, x.out, x.wakes, x.onCommit, x.sync = nil, nil, nil, nil, false
}

// closeStale closes the batches that no iteration reads. The caller holds x.mu.
func (x *tx) closeStale() {
	if x.scans > 0 {
		return
	}
	for _, b := range x.stale {
		b.Close()
	}
	x.stale = nil
}

// close ends the transaction. A handler that uses it afterwards gets errors.
func (x *tx) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.drop()
}

// EmitAll collects a copy of m for each lane.
func (x *tx) EmitAll(m flow.Message) {
	id := m.ID
	for i, l := range x.t.topic(m.Topic).lanes {
		m.ID, m.Key = flow.DeriveID("lane", id, strconv.Itoa(i)), ""
		o := x.t.output(m)
		o.lane = l
		x.collect(o)
	}
}

// Neighbours yields the keys in the lane of x's message for which group keeps state. If the
// store fails, it ends like Transport.States.
func (x *tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return x.t.views(group, x.t.db.LaneStateKeys(group, x.cur.lane.index, ""))
}

var errReadOnly = errors.New("local: this state can only be read")

// state is the state of a group for a key within a transaction. If x is nil, there is no
// transaction, and the state is read-only.
type state struct {
	t     *Transport
	x     *tx
	group string
	lane  int
	key   string
}

var _ flow.State = (*state)(nil)

// read calls f with the batch to read through.
func (s *state) read(f func(b *store.Batch) error) error {
	if s.x == nil {
		return f(nil)
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	// Few handlers read after they have written, so the batch is indexed only for those that
	// do.
	if s.x.batch != nil {
		if err := s.x.batch.Index(); err != nil {
			return err
		}
	}
	return f(s.x.batch)
}

// write calls f with the transaction's batch.
func (s *state) write(f func(b *store.Batch)) error {
	if s.x == nil {
		return errReadOnly
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	if s.x.batch == nil {
		b, err := s.t.db.NewBatch(false)
		if err != nil {
			return err
		}
		s.x.batch = b
	}
	f(s.x.batch)
	return nil
}

func (s *state) Get(name string) (value []byte, ok bool, err error) {
	err = s.read(func(b *store.Batch) error {
		value, ok, err = s.t.db.GetState(b, s.group, s.lane, s.key, name)
		return err
	})
	return value, ok, err
}

func (s *state) Set(name string, value []byte) error {
	return s.write(func(b *store.Batch) { b.SetState(s.group, s.lane, s.key, name, value) })
}

func (s *state) Delete(name string) error {
	return s.write(func(b *store.Batch) { b.DeleteState(s.group, s.lane, s.key, name) })
}

// Scan does not hold the lock of the transaction while it yields, so that the loop may read.
func (s *state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		var batch *store.Batch
		err := s.read(func(b *store.Batch) error {
			batch = b
			if s.x != nil {
				s.x.scans++
			}
			return nil
		})
		more := true
		if err == nil {
			defer s.scanned()
			err = s.t.db.ScanState(batch, s.group, s.lane, s.key, prefix, func(name string, v []byte) bool {
				more = yield(name, flow.Value{Bytes: v})
				return more
			})
		}
		if err != nil && more {
			yield("", flow.Value{Err: err})
		}
	}
}

// scanned ends a scan.
func (s *state) scanned() {
	if s.x == nil {
		return
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.scans--
	s.x.closeStale()
}

// State returns the committed state of group for key. It is read-only.
func (t *Transport) State(group, key string) flow.State {
	return &state{t: t, group: group, lane: t.laneOf(key), key: key}
}

// States yields the keys behind after for which group keeps state, in order, each with its committed
// state. It does not read the values. If the store fails, the last pair is an empty
// key and a state whose reads fail.
func (t *Transport) States(group, after string) iter.Seq2[string, flow.State] {
	return t.views(group, t.db.StateKeys(group, after))
}

// views yields keys, each with the committed state that group keeps for it.
func (t *Transport) views(group string, keys iter.Seq2[string, error]) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for key, err := range keys {
			if err != nil {
				yield("", flow.FailedState(err))
				return
			}
			if !yield(key, t.State(group, key)) {
				return
			}
		}
	}
}
