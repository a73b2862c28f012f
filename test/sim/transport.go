package sim

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

// transport holds the topics. Where it is local, everything that is committed can be taken
// back until it is durable: that is what a power cut does to what was written last.
type transport struct {
	store string // its name, in positions
	lanes int
	logs  map[string][][]flow.Message // by topic and lane
	// first is the oldest message that is kept, by topic and lane.
	first map[string][]int
	// undo is what is not durable; nil on Kafka, where all that can be read is.
	undo *undoing
	// states is the state topic, by lane, on Kafka only.
	states []*changelog
}

func newTransport(lanes int) *transport {
	return &transport{
		store: "sim",
		lanes: lanes,
		logs:  make(map[string][][]flow.Message),
		first: make(map[string][]int),
	}
}

func (t *transport) lane(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(t.lanes))
}

func (t *transport) log(topic string) [][]flow.Message {
	if t.logs[topic] == nil {
		t.logs[topic] = make([][]flow.Message, t.lanes)
		t.first[topic] = make([]int, t.lanes)
	}
	return t.logs[topic]
}

// at is where c stands in l.
func (t *transport) at(c consumer, l *lane) int {
	t.log(c.Topic)
	return max(l.position(c), t.first[c.Topic][l.id])
}

// next returns the message that c handles next in l, and where it stands.
func (t *transport) next(c consumer, l *lane) (m flow.Message, at int, ok bool) {
	log, at := t.log(c.Topic)[l.id], t.at(c, l)
	if at >= len(log) {
		return m, 0, false
	}
	return log[at], at, true
}

// append puts a message into its topic. It comes out of the log as it would from a real one:
// with a position, and sharing nothing with what the sender keeps.
func (t *transport) append(o laned) {
	m, lane := o.Message, o.lane
	log := t.log(m.Topic)
	if len(log[lane])%2 == 0 {
		m = wire(m)
	}
	m.Header, m.Body = maps.Clone(m.Header), slices.Clone(m.Encoded())
	m.Time = m.Time.UTC()
	m.Position = fmt.Sprintf("%s/%s/%d/%d", t.store, m.Topic, lane, len(log[lane]))
	log[lane] = append(log[lane], m)
	if t.undo != nil {
		t.undo.add(func() { log[lane] = log[lane][:len(log[lane])-1] })
	}
}

// wire returns m as it is read from a log after a restart: what it remembers of how it was
// made is gone. A transport may hand out messages of both kinds.
func wire(m flow.Message) flow.Message {
	w, err := flow.FromMetadata(m.Metadata(), m.Encoded())
	if err != nil {
		panic("sim: " + err.Error()) // what was published can be read
	}
	w.Topic, w.Position = m.Topic, m.Position
	return w
}
