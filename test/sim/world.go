package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// start is when the virtual clock begins.
var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// world is one run: the transport, the processes that run the stages over it, and
// everybody outside.
type world struct {
	cfg   Config
	rng   *rand.Rand
	now   time.Time
	clock *engine.Clock
	calm  bool // nothing goes wrong any more
	steps int
	t     *transport
	stats Stats
	trace []string

	expireAfter int // failed checks; less than 1 is never
	policy      policy
	offline     bool // nothing can be reached

	processes []*process
	tenures   int // how often a process began to own something
	// On Kafka: owner is which process the group gives each lane to, if any; outage that
	// brokers are away; blocked what publishers will publish, or publish again.
	owner     []*process
	outage    bool
	blocked   []flow.Message
	shuttling *shuttle

	// overlapping is what a handler wrote that has not committed yet, while another runs.
	overlapping map[string][]byte

	// act counts what is done. Handled is when the message was handled, and followed as which
	// act, whose commit is followed up.
	act, followed int
	handled       time.Time

	// slow is a consumer that lags behind.
	slow consumer

	// What lives outside.
	sites     []*site
	linked    bool                  // subscriptions follow links
	wish      pipeline.Subscription // the last one with options of its own
	late      []flow.Message        // outcomes that will come a second time
	receivers *receivers
	seen      []observation // what fetches saw, by the number in the outcome's header
	commands  int
	waited    int // how often in a row something was not ready for its message

	// incarnations is in which life of its page a subscription is, by its own.
	incarnations map[string]string
	// subscriptionOf names the subscription that a notification is for.
	subscriptionOf map[string]string
	// broughtBack is how often a digest was brought back.
	broughtBack map[string]int
	dropped     map[string]bool // pages of which index dropped a message after it handled it
	broken      error           // what was noticed where it could not be returned
	replays     int
	byID        map[string]*told // what was told, once that is compared
}

// policy is when notifications and receivers are given up.
type policy struct{ deadAfter, expireAfter time.Duration }

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)), now: start,
		incarnations: make(map[string]string), subscriptionOf: make(map[string]string),
		dropped: make(map[string]bool),
	}
	w.expireAfter = pick(w.rng, []int{10, 10, 5, -1})
	w.policy = pick(w.rng, []policy{{72 * time.Hour, 5 * 24 * time.Hour}, {20 * time.Minute, time.Hour}})
	w.t = newTransport(1 + w.rng.IntN(3))
	n := 1 + w.rng.IntN(3)
	if w.linked = cfg.Seed%4 == 0; w.linked {
		n += 2
		w.cfg.Steps *= 2 // there is more to do
	}
	for i := range n {
		s := newSite(w.rng, i)
		for range 1 + w.rng.IntN(n) {
			s.relink(w.rng, n)
		}
		w.sites = append(w.sites, s)
	}
	w.receivers = newReceivers()
	w.clock = w.newClock()
	w.clock.See(start)
	w.populate()
	return w
}

// populate starts the processes: one that keeps everything itself, or several that share
// the lanes over Kafka.
func (w *world) populate() {
	n := w.cfg.Processes
	if n == 0 {
		n = pick(w.rng, []int{1, 1, 2, 3, 4})
	}
	for i := range n {
		p := &process{w: w, name: i, lanes: make(map[int]*lane), kept: make(map[int]*lane)}
		w.processes = append(w.processes, p)
		w.build(p)
	}
	if n > 1 {
		w.owner = make([]*process, w.t.lanes)
		for range w.t.lanes {
			w.t.states = append(w.t.states, &changelog{ledger: ledger{}.copy()})
		}
		return
	}
	w.t.undo = &undoing{}
	for id := range w.t.lanes {
		l := newLane(id, w.t.undo)
		l.start()
		l.by, w.processes[0].lanes[id] = w.processes[0], l
	}
}

func (w *world) tracef(format string, args ...any) {
	if w.cfg.Trace {
		w.trace = append(w.trace, fmt.Sprintf("%5d %s  ", w.steps, w.now.Format("02 15:04:05"))+fmt.Sprintf(format, args...))
	}
}

// chance is true once in n times, and never once things are calm.
func (w *world) chance(n int) bool { return !w.calm && w.rng.IntN(n) == 0 }

// consumers lists who reads what, in a fixed order.
var consumers = []consumer{
	{Group: flow.GroupIndex, Topic: flow.TopicDocuments},
	{Group: flow.GroupFetch, Topic: flow.TopicRequests},
	{Group: flow.GroupDiff, Topic: flow.TopicSnapshots},
	{Group: flow.GroupMatch, Topic: flow.TopicSubscriptions},
	{Group: flow.GroupMatch, Topic: flow.TopicChanges},
	deliveryConsumer,
	{Group: flow.GroupDead, Topic: flow.TopicDead},
	{Group: flow.GroupHealth, Topic: flow.TopicHealth},
}

var deliveryConsumer = consumer{Group: flow.GroupDelivery, Topic: flow.TopicNotifications}

// handleable is a message that a consumer can handle next.
type handleable struct {
	p       *process
	l       *lane
	c       consumer
	at      int // where it stands in its log, if it came from there
	message flow.Message
	kind    engine.Kind
	posted  int // index into the inbox, if it came from there
}

// ready lists all that the stages can handle next, in a fixed order.
func (w *world) ready() []handleable {
	var hs []handleable
	for _, p := range w.processes {
		hs = append(hs, p.ready()...)
	}
	return hs
}

// handle lets a consumer handle one message: all that follows from it is committed, or
// nothing is.
func (w *world) handle(h handleable) error {
	x := w.t.begin(h)
	err := w.process(h, x)
	if class, _ := failure.ClassOf(err); err != nil && class == failure.ClassNotYet {
		w.stats.Waits++
		w.waited++
		w.tracef("%v waits: %v", h.c, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%v: %s of %s: %w", h.c, h.message.Type, h.message.Key, err)
	}
	wrote := x.wrote()
	for name := range w.overlapping {
		if _, both := wrote[name]; both {
			return fmt.Errorf("%v: %s of %s writes %q, as another handler does at the same time", h.c, h.message.Type, h.message.Key, name)
		}
	}
	if x.foreign {
		return fmt.Errorf("%v: %s of %s touched the state of another key", h.c, h.message.Type, h.message.Key)
	}
	if w.chance(30) {
		w.stats.Nacks++
		if h.c.Group == flow.GroupIndex {
			w.dropped[h.message.Key] = true
		}
		w.tracef("%v %s of %s is dropped after it was handled", h.c, h.message.Type, h.message.Key)
		return nil
	}
	if w.overlapping == nil && w.chance(4) {
		if alive, err := w.meanwhile(h, x); !alive || err != nil {
			return err
		}
	}
	if err := x.end(); err != nil {
		return err
	}
	w.waited = 0
	w.tracef("%d: %v %s %s%s", h.p.name, h.c, h.message.Type, h.message.Key, describe(x.emitted()))
	if w.kafka() {
		return errors.Join(w.merge(h, x), w.broken)
	}
	return w.commitLocal(h, x)
}

// commitLocal makes all of x stand, in a power cut maybe not.
func (w *world) commitLocal(h handleable, x *tx) error {
	h.l.apply(h, x, false)
	for _, o := range x.did.Out {
		w.t.append(o)
	}
	w.act++
	if err := w.record(h, x); err != nil {
		return err
	}
	if x.did.Sync {
		w.t.undo.settle()
	}
	if h.kind == engine.FromPost {
		w.receivers.confirmed(h.p.inbox[h.posted])
		h.p.inbox = slices.Delete(h.p.inbox, h.posted, h.posted+1)
	}
	if w.chance(10) && !w.cfg.Stormy {
		w.t.undo.settle()
	}
	if w.chance(300) {
		w.crash(h.p, "between commit and what follows it")
		return nil
	}
	w.handled, w.followed = w.now, w.act
	for _, f := range x.did.OnCommit {
		f()
	}
	return w.broken
}

// process calls the processor of h; a panic of it is an error.
func (w *world) process(h handleable, x *tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return h.p.procs[h.c].Process(flow.WithTx(context.Background(), x), x, h.message)
}

// meanwhile lets a consumer of the same group handle a message of the same key on another
// topic, between the handling of h and its commit, as lanes may. alive is false where the
// process did not survive that.
func (w *world) meanwhile(h handleable, x *tx) (alive bool, err error) {
	tenure := h.l.tenure
	for _, other := range h.p.ready() {
		if other.l != h.l || other.c.Group != h.c.Group || other.c.Topic == h.c.Topic || other.message.Key != h.message.Key {
			continue
		}
		w.overlapping = x.wrote()
		err := w.handle(other)
		w.overlapping = nil
		return h.p.lanes[h.l.id] == h.l && h.l.tenure == tenure, err
	}
	return true, nil
}

func describe(out []flow.Message) string {
	s := ""
	for _, m := range out {
		s += fmt.Sprintf(" → %s %s", m.Topic, m.ID[:min(6, len(m.ID))])
		if sn, err := flow.SnapshotFrom(m); err == nil && m.Type == flow.TypeSnapshot {
			s += fmt.Sprintf(" (version %d)", sn.N)
		}
	}
	return s
}
