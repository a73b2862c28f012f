package local

import (
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

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
	// scans counts the iterations that go on; stale are the batches that they keep open.
	scans int
	stale []*store.Batch
	// The commit trims the log of its lane from trimFrom to before trimTo.
	trimFrom, trimTo uint64
}

// output is a message on its way into a lane.
type output struct {
	lane *lane
	rec  store.Record
	size int
}

// logged reports whether o is stored.
func (o output) logged() bool { return !o.lane.topic.volatile }

// wakeChange is what a transaction does to the wake of a key.
type wakeChange struct {
	cur     *cursor
	key     string
	at      time.Time
	atStart bool
}

var _ flow.Tx = (*tx)(nil)

func newTx(cur *cursor, w work) *tx { return &tx{t: cur.c.t, cur: cur, w: w} }

// State returns the state that the message's group keeps for key.
func (x *tx) State(key string) flow.State {
	return &state{t: x.t, x: x, group: x.cur.c.group, lane: x.t.laneOf(key), key: key}
}

// Emit collects m.
func (x *tx) Emit(m flow.Message) { x.collect(x.t.output(m)) }

// collect adds what is to be published with the commit; false when it is over.
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
	w := wakeChange{cur: x.cur.c.cursors[x.t.laneOf(key)], key: key, at: at}
	for _, o := range opts {
		w.atStart = w.atStart || o == flow.AtStart
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	for i := range x.wakes {
		if x.wakes[i].key == key {
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

// position is where the message stands in its log.
func (x *tx) position() string {
	if x.w.kind != fromLog || x.cur.place == "" {
		return ""
	}
	return x.cur.place + strconv.FormatUint(x.w.entry.Offset, 10)
}

// Message is the message being handled.
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

// closeStale closes the batches that nobody reads any more. x.mu is held.
func (x *tx) closeStale() {
	if x.scans > 0 {
		return
	}
	for _, b := range x.stale {
		b.Close()
	}
	x.stale = nil
}

// close ends the transaction; what a handler that goes on does then is an error.
func (x *tx) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.drop()
}
