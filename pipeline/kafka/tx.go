package kafka

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var (
	errOver  = errors.New("kafka: the transaction is over")
	errMoved = fmt.Errorf("kafka: %w", flow.ErrMoved)
)

// kind is the origin of a message.
type kind int

const (
	fromLog kind = iota
	fromPost
	fromWake
)

// work is one message to handle.
type work struct {
	kind    kind
	record  *sarama.ConsumerMessage // fromLog
	message *flow.Message           // fromPost, fromWake
	wake    mill.Wake               // fromWake
}

// key returns the key of the message.
func (w work) key() string {
	if w.record != nil {
		return string(w.record.Key)
	}
	return w.message.Key
}

// tx is the transaction of one attempt to handle one message. Its writes become part of a
// transaction of the lane when the message is acknowledged.
type tx struct {
	lease *lease
	who   consumer
	w     work

	mu       sync.Mutex
	over     bool
	layer    layer
	out      []output
	wakes    map[string]mill.Wake // by key; a zero time removes the wake
	onCommit []func()
	sync     bool
	moves    bool // it only moves its own record, unless that was done before
}

var _ flow.Tx = (*tx)(nil)

// State returns the state of the message's group for key.
func (x *tx) State(key string) flow.State {
	return &state{lease: x.lease, x: x, place: place{x.who.group, key}}
}

// Emit adds m to the outputs.
func (x *tx) Emit(m flow.Message) { x.collect(outputOf(m, x.lease.t.lanes)) }

// EmitAll adds a copy of m for every lane to the outputs.
func (x *tx) EmitAll(m flow.Message) {
	m.Key = ""
	id := m.ID
	for lane := range x.lease.t.lanes {
		m.ID = flow.DeriveID("lane", id, strconv.Itoa(lane))
		o := outputOf(m, x.lease.t.lanes)
		o.lane = lane
		x.collect(o)
	}
}

// Neighbours yields the keys and states of group in the message's lane.
func (x *tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return x.lease.t.statesOf(map[int]*lease{x.lease.lane: x.lease}, group, "")
}

// collect adds outputs; it returns false if the transaction is over.
func (x *tx) collect(o ...output) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.out = append(x.out, o...)
	return true
}

// WakeAt sets the wake of key; the zero time deletes it.
func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	w := mill.Wake{Key: key, At: at}
	for _, o := range opts {
		w.AtStart = w.AtStart || o == flow.AtStart
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	if x.wakes == nil {
		x.wakes = make(map[string]mill.Wake)
	}
	x.wakes[key] = w
}

// OnCommit makes f run after the commit.
func (x *tx) OnCommit(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.onCommit = append(x.onCommit, f)
	}
}

// Sync makes the commit urgent.
func (x *tx) Sync() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sync = true
}

// position is the position of the message in its topic; empty if it is not from a topic.
func (x *tx) position() string {
	if x.w.kind != fromLog {
		return ""
	}
	return x.lease.t.lineage + "/" + x.who.topic + "/" + strconv.Itoa(x.lease.lane) + "/" + strconv.FormatInt(x.w.record.Offset, 10)
}

// Message returns the message that is being handled.
func (x *tx) Message() (flow.Message, error) {
	p := x.w.message
	switch {
	case p == nil:
		uuid, meta := received(x.w.record)
		return flow.Received(x.who.topic, uuid, x.position(), meta, x.w.record.Value)
	case p.ID == "" || p.Type == "":
		return flow.Received(x.who.topic, p.ID, "", p.Metadata(), p.Body)
	}
	m := *p
	m.Header = maps.Clone(m.Header) // shared with later attempts
	m.Topic = x.who.topic
	return m, nil
}

// Fits returns a permanent error if an output or a value is larger than a record may be: it would
// make every transaction of the lane fail.
func (x *tx) Fits() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range x.out {
		if n := o.size(); n > admin.MaxRecord || n > client.MaxMessage && o.packed() > client.MaxMessage-client.MaxMessage/8 {
			return failure.Permanent(fmt.Errorf("a message for topic %s takes %d bytes, and a record at most %d, and %d when it is compressed", o.topic, n, admin.MaxRecord, client.MaxMessage))
		}
	}
	for p, names := range x.layer.states {
		for name, value := range names {
			if n := len(value) + len(p.key) + len(name) + recordOverhead; n > client.MaxMessage {
				return failure.Permanent(fmt.Errorf("the value %q of %q takes %d bytes, and a record at most %d", name, p.key, n, client.MaxMessage))
			}
		}
	}
	return nil
}

// outputs returns the collected outputs.
func (x *tx) outputs() []output {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.out)
}

// Reset drops all writes of the attempt.
func (x *tx) Reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop()
}

func (x *tx) drop() {
	x.layer, x.out, x.wakes, x.onCommit, x.sync = layer{}, nil, nil, nil, false
}

// close ends the transaction. A handler that still uses it gets errors.
func (x *tx) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.drop()
}
