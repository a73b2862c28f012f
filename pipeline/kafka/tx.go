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

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var (
	errOver  = errors.New("kafka: the transaction is over")
	errMoved = fmt.Errorf("kafka: %w", flow.ErrMoved)
)

// kind says where a piece of work comes from.
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
	wake    wake                    // fromWake
}

// key is that of the message.
func (w work) key() string {
	if w.record != nil {
		return string(w.record.Key)
	}
	return w.message.Key
}

// tx is the transaction of one attempt to handle one message. What it collects becomes
// part of a transaction of its lane when the message is acknowledged.
type tx struct {
	lease *lease
	who   consumer
	w     work

	mu       sync.Mutex
	over     bool
	layer    layer
	out      []output
	wakes    map[string]wake // by key; the zero wake takes one back
	onCommit []func()
	sync     bool
	moves    bool // all that it publishes is its own record, unless that was moved before
}

var _ flow.Tx = (*tx)(nil)

// State returns the state that the message's group keeps for key.
func (x *tx) State(key string) flow.State {
	return &state{lease: x.lease, x: x, place: place{x.who.group, key}}
}

// Emit collects m.
func (x *tx) Emit(m flow.Message) { x.collect(outputOf(m, x.lease.t.lanes)) }

// EmitAll collects a copy of m for every lane.
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

// Neighbours yields the states that group keeps in the message's lane.
func (x *tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return x.lease.states(group)
}

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
	w := wake{at: at}
	for _, o := range opts {
		w.atStart = w.atStart || o == flow.AtStart
	}
	if at.IsZero() {
		w = wake{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	if x.wakes == nil {
		x.wakes = make(map[string]wake)
	}
	x.wakes[key] = w
}

// OnCommit collects f.
func (x *tx) OnCommit(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.onCommit = append(x.onCommit, f)
	}
}

// Sync makes the commit a transaction of its own time, not one that may wait.
func (x *tx) Sync() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sync = true
}

// position is where the message stands in its topic.
func (x *tx) position() string {
	if x.w.kind != fromLog {
		return ""
	}
	return x.lease.t.lineage + "/" + x.who.topic + "/" + strconv.Itoa(x.lease.lane) + "/" + strconv.FormatInt(x.w.record.Offset, 10)
}

// Message is the message being handled.
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
	m.Header = maps.Clone(m.Header) // a later attempt has the same
	m.Topic = x.who.topic
	return m, nil
}

// Fits returns a permanent error for an output or a value that is larger than a record may be: in a transaction it
// would make the lane fail for ever.
func (x *tx) Fits() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range x.out {
		if n := o.size(); n > admin.MaxRecord || n > client.MaxMessage && o.packed() > client.MaxMessage-client.MaxMessage/8 {
			return failure.Permanent(fmt.Errorf("a message for topic %s takes %d bytes, and a record at most %d, and %d when it is packed", o.topic, n, admin.MaxRecord, client.MaxMessage))
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

// outputs returns what was collected to be published.
func (x *tx) outputs() []output {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.out)
}

// Reset drops all that the attempt did so far.
func (x *tx) Reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop()
}

func (x *tx) drop() {
	x.layer, x.out, x.wakes, x.onCommit, x.sync = layer{}, nil, nil, nil, false
}

// close ends the transaction; what a handler that goes on does then is an error.
func (x *tx) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.drop()
}
