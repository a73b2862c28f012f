package sim

import (
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// transport holds topics, positions, state and wakes. Every commit can be taken back
// until it is durable: that is what a power cut does to those written last.
type transport struct {
	store string // its name, in positions
	lanes int
	logs  map[string][][]pipeline.Message // by topic and lane
	pos   map[consumerID][]int            // by lane: the next message to handle
	state map[string]map[string][]byte    // by group and key
	wakes map[wakeID]wake
	undo  []func() // what takes back the commits that are not durable, in their order
}

// consumerID is a consumer group on one topic.
type consumerID struct{ group, topic string }

func (c consumerID) String() string { return c.group + "<" + c.topic }

type wakeID struct {
	consumerID
	key string
}

type wake struct {
	at      time.Time
	atStart bool
}

func newTransport(lanes int) *transport {
	return &transport{
		store: "sim",
		lanes: lanes,
		logs:  make(map[string][][]pipeline.Message),
		pos:   make(map[consumerID][]int),
		state: make(map[string]map[string][]byte),
		wakes: make(map[wakeID]wake),
	}
}

func (t *transport) lane(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(t.lanes))
}

func (t *transport) log(topic string) [][]pipeline.Message {
	if t.logs[topic] == nil {
		t.logs[topic] = make([][]pipeline.Message, t.lanes)
	}
	return t.logs[topic]
}

// positions returns where c stands in each lane.
func (t *transport) positions(c consumerID) []int {
	if t.pos[c] == nil {
		t.pos[c] = make([]int, t.lanes)
	}
	return t.pos[c]
}

// next returns the message that c handles next in lane.
func (t *transport) next(c consumerID, lane int) (pipeline.Message, bool) {
	log, at := t.log(c.topic)[lane], t.positions(c)[lane]
	if at >= len(log) {
		return pipeline.Message{}, false
	}
	return log[at], true
}

// append puts m into its topic. It comes out of the log as it would from a real one:
// with a position, and sharing nothing with what the sender keeps.
func (t *transport) append(m pipeline.Message) {
	lane := t.lane(m.Key)
	log := t.log(m.Topic)
	if len(log[lane])%2 == 0 {
		m = wire(m)
	}
	m.Header, m.Body = maps.Clone(m.Header), slices.Clone(m.Body)
	m.Time = m.Time.UTC()
	m.Position = fmt.Sprintf("%s/%s/%d/%d", t.store, m.Topic, lane, len(log[lane]))
	log[lane] = append(log[lane], m)
	t.undone(func() { log[lane] = log[lane][:len(log[lane])-1] })
}

// wire returns m as it is read from a log after a restart: what it remembers of how it was
// made is gone. A transport may hand out messages of both kinds.
func wire(m pipeline.Message) pipeline.Message {
	w, err := pipeline.FromMetadata(m.Metadata(), m.Body)
	if err != nil {
		panic("sim: " + err.Error()) // what was published can be read
	}
	w.Topic, w.Position = m.Topic, m.Position
	return w
}

func (t *transport) undone(f func()) { t.undo = append(t.undo, f) }

// sync makes all commits so far durable.
func (t *transport) sync() { t.undo = nil }

// rollback takes back all commits that are not durable.
func (t *transport) rollback() {
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo = nil
}

// tx is the transaction of one message.
type tx struct {
	t     *transport
	c     consumerID
	key   string
	wrote map[string]*[]byte // by name; nil is deleted
	out   []pipeline.Message
	woken map[string]wake // by key; the zero wake is taken back
	after []func()
	synced,
	foreign bool
}

var (
	_ pipeline.Tx     = (*tx)(nil)
	_ pipeline.Syncer = (*tx)(nil)
)

func (x *tx) State(key string) pipeline.State {
	if key != x.key {
		x.foreign = true
	}
	return &txState{x, x.t.state[x.c.group+"\x00"+key]}
}

func (x *tx) Emit(m pipeline.Message) { x.out = append(x.out, m) }
func (x *tx) OnCommit(f func())       { x.after = append(x.after, f) }
func (x *tx) Sync()                   { x.synced = true }

func (x *tx) WakeAt(key string, at time.Time, opts ...pipeline.WakeOption) {
	if key != x.key {
		x.foreign = true
	}
	x.woken[key] = wake{at.UTC(), !at.IsZero() && slices.Contains(opts, pipeline.AtStart)}
}

type txState struct {
	x         *tx
	committed map[string][]byte
}

func (s *txState) Get(name string) ([]byte, bool, error) {
	if v, ok := s.x.wrote[name]; ok {
		if v == nil {
			return nil, false, nil
		}
		return slices.Clone(*v), true, nil
	}
	v, ok := s.committed[name]
	return slices.Clone(v), ok, nil
}

func (s *txState) Set(name string, value []byte) error {
	if name == "" {
		return fmt.Errorf("state: empty name")
	}
	v := slices.Clone(value)
	s.x.wrote[name] = &v
	return nil
}

func (s *txState) Delete(name string) error {
	s.x.wrote[name] = nil
	return nil
}

func (s *txState) Scan(prefix string) iter.Seq2[string, pipeline.Value] {
	names := make(map[string]bool)
	for n := range s.committed {
		names[n] = true
	}
	for n, v := range s.x.wrote {
		names[n] = v != nil
	}
	return func(yield func(string, pipeline.Value) bool) {
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if !names[n] || !strings.HasPrefix(n, prefix) {
				continue
			}
			v, _, _ := s.Get(n)
			if !yield(n, pipeline.Value{Bytes: v}) {
				return
			}
		}
	}
}

// begin opens a transaction for a message of key at consumer c.
func (t *transport) begin(c consumerID, key string) *tx {
	return &tx{t: t, c: c, key: key, wrote: make(map[string]*[]byte), woken: make(map[string]wake)}
}

// commit makes state, outputs and wakes of x stand, and the position of its consumer
// where the message came from a log.
func (t *transport) commit(x *tx, lane int, fromLog bool) {
	owner := x.c.group + "\x00" + x.key
	if t.state[owner] == nil && len(x.wrote) > 0 {
		t.state[owner] = make(map[string][]byte)
	}
	state := t.state[owner]
	for name, v := range x.wrote {
		old, was := state[name]
		t.undone(func() {
			if was {
				state[name] = old
			} else {
				delete(state, name)
			}
		})
		if v == nil {
			delete(state, name)
		} else {
			state[name] = *v
		}
	}
	for _, m := range x.out {
		t.append(m)
	}
	for key, w := range x.woken {
		t.setWake(wakeID{x.c, key}, w)
	}
	if fromLog {
		pos := t.positions(x.c)
		pos[lane]++
		t.undone(func() { pos[lane]-- })
	}
	if x.synced {
		t.sync()
	}
}

// setWake sets a wake, or takes it back where w.at is zero.
func (t *transport) setWake(id wakeID, w wake) {
	old, was := t.wakes[id]
	t.undone(func() {
		if was {
			t.wakes[id] = old
		} else {
			delete(t.wakes, id)
		}
	})
	if w.at.IsZero() {
		delete(t.wakes, id)
	} else {
		t.wakes[id] = w
	}
}
