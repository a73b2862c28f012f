package sim

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// transport holds the topics. Where it is local, everything that is committed can be taken
// back until it is durable: that is what a power cut does to what was written last.
type transport struct {
	storeName string // its name, in positions
	lanes     int
	logs      map[string][][]flow.Message // by topic and lane
	// firstKept is the oldest message that is kept, by topic and lane.
	firstKept map[string][]int
	// undo is what is not durable; nil on Kafka, where all that can be read is.
	undo *undoLog
	// states is the state topic, by lane, on Kafka only.
	states []*changelog
}

func newTransport(lanes int) *transport {
	return &transport{
		storeName: "sim",
		lanes:     lanes,
		logs:      make(map[string][][]flow.Message),
		firstKept: make(map[string][]int),
	}
}

func (t *transport) laneOf(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(t.lanes))
}

func (t *transport) log(topic string) [][]flow.Message {
	if t.logs[topic] == nil {
		t.logs[topic] = make([][]flow.Message, t.lanes)
		t.firstKept[topic] = make([]int, t.lanes)
	}
	return t.logs[topic]
}

// position is where c stands in l.
func (t *transport) position(c consumer, l *lane) int {
	t.log(c.Topic)
	return max(l.position(c), t.firstKept[c.Topic][l.id])
}

// nextMessage returns the message that c handles next in l, and where it stands.
func (t *transport) nextMessage(c consumer, l *lane) (m flow.Message, at int, ok bool) {
	log, at := t.log(c.Topic)[l.id], t.position(c, l)
	if at >= len(log) {
		return m, 0, false
	}
	return log[at], at, true
}

// append puts a message into its topic. It comes out of the log as it would from a real one:
// with a position, and sharing nothing with what the sender keeps.
func (t *transport) append(o routedMessage) {
	m, lane := o.Message, o.lane
	log := t.log(m.Topic)
	if len(log[lane])%2 == 0 {
		m = asReadFromLog(m)
	}
	m.Header, m.Body = maps.Clone(m.Header), slices.Clone(m.Encoded())
	m.Time = m.Time.UTC()
	m.Position = fmt.Sprintf("%s/%s/%d/%d", t.storeName, m.Topic, lane, len(log[lane]))
	log[lane] = append(log[lane], m)
	if t.undo != nil {
		t.undo.add(func() { log[lane] = log[lane][:len(log[lane])-1] })
	}
}

// asReadFromLog returns m as it is read from a log after a restart: what it remembers of how it was
// made is gone. A transport may hand out messages of both kinds.
func asReadFromLog(m flow.Message) flow.Message {
	w, err := flow.FromMetadata(m.Metadata(), m.Encoded())
	if err != nil {
		panic("sim: " + err.Error()) // what was published can be read
	}
	w.Topic, w.Position = m.Topic, m.Position
	return w
}

// tx is the transaction of one message.
type tx struct {
	*engine.Tx[routedMessage]
	transport *transport
	consumer  consumer
	key       string
	// touchedOtherKey says that it touched another key.
	touchedOtherKey bool
	emitted         []flow.Message
	// inner are those of the chain that became a part of it, in order.
	inner []*tx

	// effects are set when the handler ended.
	effects engine.Effects[routedMessage]
}

var _ flow.Tx = (*tx)(nil)

// beginTx opens a transaction for h in its lane.
func (t *transport) beginTx(h workItem) *tx {
	w := engine.Work{Kind: h.kind, Message: &h.message, Position: h.message.Position, Wake: engine.Wake{Key: h.message.Key}}
	links := h.l.links()
	if i := slices.IndexFunc(links, func(l *engine.Link) bool { return l.Consumer == h.c }); i >= 0 {
		w.Link = links[i]
	}
	if w.Link == nil && h.c != chain.Head {
		links = nil
	}
	return t.wrapTx(engine.NewTx(h.l.state, t, h.c.Group, h.c.Topic, w, links))
}

func (t *transport) wrapTx(x *engine.Tx[routedMessage]) *tx {
	return &tx{Tx: x, transport: t, consumer: consumer{Group: x.Group, Topic: x.Topic}, key: x.Work.Key()}
}

// collectEffects ends the transaction and keeps its effects, which are then to be committed.
func (x *tx) collectEffects() error {
	return x.Commit(func(e *engine.Effects[routedMessage]) error {
		x.effects = *e
		return nil
	})
}

func (x *tx) State(key string) flow.State {
	x.touchedOtherKey = x.touchedOtherKey || key != x.key
	return x.Tx.State(key)
}

func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	x.touchedOtherKey = x.touchedOtherKey || key != x.key
	x.Tx.WakeAt(key, at.UTC(), opts...)
}

func (x *tx) Emit(m flow.Message) {
	x.emitted = append(x.emitted, m)
	x.Tx.Emit(m)
}

// place is where the group keeps state for the key.
func (x *tx) place() engine.Place { return engine.Place{Group: x.consumer.Group, Key: x.key} }

// all yields x and what became a part of it.
func (x *tx) all() []*tx {
	all := []*tx{x}
	for _, inner := range x.inner {
		all = append(all, inner.all()...)
	}
	return all
}

var _ engine.Outputs[routedMessage] = (*transport)(nil)

// Lanes returns how many lanes there are.
func (t *transport) Lanes() int { return t.lanes }

// Output returns m with the lane of its key.
func (t *transport) Output(m flow.Message) routedMessage { return routedMessage{m, t.laneOf(m.Key)} }

// OutputTo returns m with a lane.
func (t *transport) OutputTo(m flow.Message, lane int) routedMessage { return routedMessage{m, lane} }

// Logged reports whether topic has a log.
func (t *transport) Logged(topic string) bool { return topics[topic].HasLog() }

// Fits returns nil: a lane takes everything.
func (t *transport) Fits(*engine.Effects[routedMessage]) error { return nil }
