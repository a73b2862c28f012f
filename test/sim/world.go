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
	"github.com/vokter/vokter/pipeline/flow"
)

// startTime is when the virtual clock begins.
var startTime = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// world is all of one simulated run: the transport, the processes that run the stages over it, and
// the pages, clients and receivers outside.
type world struct {
	cfg        Config
	rng        *rand.Rand
	now        time.Time
	clock      *engine.Clock
	faultsOver bool // nothing goes wrong any more
	steps      int
	transport  *transport
	stats      Stats
	trace      []string

	expireAfter int           // failed checks; less than 1 is never
	expireRetry time.Duration // for which a dormant page is checked; negative is not at all
	policy      receiverPolicy
	offline     bool // nothing can be reached

	processes   []*process
	tenureCount int // how often a process became the owner of a lane, or started
	// On Kafka: laneOwners is which process the group gives each lane to, if any. outage says that the
	// brokers are away. unpublished is what publishers will publish, or publish again.
	laneOwners  []*process
	outage      bool
	unpublished []flow.Message
	roundTrip   *laneRoundTrip

	// actionCount counts the messages that were handled. followedAction and handledAt are the number and the
	// time of the one whose commit is followed up now.
	actionCount, followedAction int
	handledAt                   time.Time

	// slowConsumer is a consumer that lags behind.
	slowConsumer consumer

	// What lives outside.
	sites            []*site
	followsLinks     bool                  // subscriptions follow links
	lastSubscription pipeline.Subscription // the last one with options of its own
	lateOutcomes     []flow.Message        // outcomes that will come a second time
	receivers        *receivers
	observations     []observation // what fetches saw, by the number in the outcome's header
	commandCount     int

	// incarnations holds the incarnation of the page of each subscription, by that of the subscription.
	incarnations map[string]string
	// subscriptionOf names the subscription that a notification is for.
	subscriptionOf map[string]string
	// digestReplays is how often a digest was brought back.
	digestReplays     map[string]int
	droppedPages      map[string]bool // pages of which index dropped a message after it handled it
	deferredErr       error           // what was noticed where it could not be returned
	replayCount       int
	notificationsByID map[string]*publishedNotification // what was told, once that is compared
}

// receiverPolicy is when notifications and receivers are given up.
type receiverPolicy struct{ deadAfter, expireAfter time.Duration }

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)), now: startTime,
		incarnations: make(map[string]string), subscriptionOf: make(map[string]string),
		droppedPages: make(map[string]bool),
	}
	w.expireAfter = pick(w.rng, []int{10, 10, 5, -1})
	w.expireRetry = pick(w.rng, []time.Duration{-1, 30 * 24 * time.Hour, 30 * 24 * time.Hour, 2 * time.Hour})
	w.policy = pick(w.rng, []receiverPolicy{{72 * time.Hour, 5 * 24 * time.Hour}, {20 * time.Minute, time.Hour}})
	w.transport = newTransport(1 + w.rng.IntN(3))
	n := 1 + w.rng.IntN(3)
	if w.followsLinks = cfg.Seed%4 == 0; w.followsLinks {
		n += 2
		w.cfg.Steps *= 2 // there is more to do
	}
	for i := range n {
		s := newSite(w.rng, i)
		for range 1 + w.rng.IntN(n) {
			s.editLinks(w.rng, n)
		}
		w.sites = append(w.sites, s)
	}
	w.receivers = newReceivers()
	w.clock = w.newClock()
	w.clock.See(startTime)
	w.startProcesses()
	return w
}

// startProcesses starts the processes: one that keeps everything itself, or several that share
// the lanes over Kafka.
func (w *world) startProcesses() {
	n := w.cfg.Processes
	if n == 0 {
		n = pick(w.rng, []int{1, 1, 2, 3, 4})
	}
	for i := range n {
		p := &process{world: w, id: i, lanes: make(map[int]*lane), laneCopies: make(map[int]*lane)}
		w.processes = append(w.processes, p)
		w.buildStages(p)
	}
	if n > 1 {
		w.laneOwners = make([]*process, w.transport.lanes)
		for range w.transport.lanes {
			w.transport.states = append(w.transport.states, &changelog{laneHistory: laneHistory{}.copy()})
		}
		return
	}
	w.transport.undo = &undoLog{}
	for id := range w.transport.lanes {
		l := newLane(id, w.transport.undo)
		l.startWakes()
		l.owner, w.processes[0].lanes[id] = w.processes[0], l
	}
}

func (w *world) tracef(format string, args ...any) {
	if w.cfg.Trace {
		w.trace = append(w.trace, fmt.Sprintf("%5d %s  ", w.steps, w.now.Format("02 15:04:05"))+fmt.Sprintf(format, args...))
	}
}

// chance is true once in n times, and never once things are calm.
func (w *world) chance(n int) bool { return !w.faultsOver && w.rng.IntN(n) == 0 }

// consumers lists who reads what, in a fixed order.
var consumers = []consumer{
	{Group: flow.GroupIndex, Topic: flow.TopicDocuments},
	{Group: flow.GroupFetch, Topic: flow.TopicRequests},
	deliveryConsumer,
	{Group: flow.GroupDead, Topic: flow.TopicDead},
	{Group: flow.GroupHealth, Topic: flow.TopicHealth},
}

// topics declares the chain of the stages, as the Router does.
var topics = map[string]flow.Topic{
	flow.TopicDocuments:     {Head: flow.GroupIndex},
	flow.TopicSnapshots:     {Chained: flow.GroupDiff, Private: true},
	flow.TopicSubscriptions: {Chained: flow.GroupMatch},
	flow.TopicChanges:       {Chained: flow.GroupMatch},
}

var chain = engine.ChainOf(topics)

// wakers lists who may have wakes, in a fixed order.
var wakers = slices.Concat(consumers, chain.Behind(chain.Head))

var deliveryConsumer = consumer{Group: flow.GroupDelivery, Topic: flow.TopicNotifications}

// workItem is a message that a consumer can handle next.
type workItem struct {
	p          *process
	l          *lane
	c          consumer
	offset     int // where it stands in its log, if it came from there
	message    flow.Message
	kind       engine.Kind
	inboxIndex int // index into the inbox, if it came from there
}

// readyWork lists all that the stages can handle next, in a fixed order.
func (w *world) readyWork() []workItem {
	var hs []workItem
	for _, p := range w.processes {
		hs = append(hs, p.readyWork()...)
	}
	return hs
}

// handle lets a consumer handle one message, and the chain what follows from it: all that is committed, or nothing is.
func (w *world) handle(h workItem) error {
	beside := -1
	if w.cfg.Fault == BatchBesideEdit && h.c.Group == flow.GroupMatch {
		ready := h.p.readyWork()
		beside = slices.IndexFunc(ready, func(o workItem) bool { return o.l == h.l && o.c == chain.Head && o.message.Key == h.message.Key })
		if beside < 0 && w.chance(2) {
			return nil // a batch that is so slow that an edit comes
		}
	}
	x, err := w.handleChain(h, w.transport.beginTx(h))
	if err != nil {
		return err
	}
	if w.chance(30) {
		w.stats.Nacks++
		if h.c.Group == flow.GroupIndex {
			w.droppedPages[h.message.Key] = true
		}
		w.tracef("%v %s of %s is dropped after it was handled", h.c, h.message.Type, h.message.Key)
		return nil
	}
	if beside >= 0 {
		if err := w.handle(h.p.readyWork()[beside]); err != nil || h.p.lanes[h.l.id] != h.l {
			return err
		}
	}
	if err := x.collectEffects(); err != nil {
		return err
	}
	if w.usesKafka() {
		return errors.Join(w.addToBatch(h, x), w.deferredErr)
	}
	return w.commitLocal(h, x)
}

// handleChain lets the processor of x handle its message, and those of the chain what that emitted. Now and then an
// attempt of these fails after it wrote and emitted, and another one is made.
func (w *world) handleChain(h workItem, x *tx) (*tx, error) {
	m, err := x.Message()
	if err == nil {
		err = w.callProcessor(h.p, x, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %s of %s: %w", x.consumer, m.Type, m.Key, err)
	}
	if x.touchedOtherKey {
		return nil, fmt.Errorf("%v: %s of %s touched the state of another key", x.consumer, m.Type, m.Key)
	}
	w.tracef("%d: %v %s %s%s", h.p.id, x.consumer, m.Type, m.Key, describeOutputs(x.emitted))
	x.HandOn(func(inner *engine.Tx[routedMessage]) *engine.Tx[routedMessage] {
		var done *tx
		for {
			if done, err = w.handleChain(h, w.transport.wrapTx(inner)); err != nil {
				return nil
			}
			if !w.chance(20) {
				break
			}
			w.stats.InnerRetries++
			w.tracef("%v %s of %s fails after it was handled", done.consumer, done.Topic, done.key)
			inner = w.keepOfFailed(done)
		}
		x.inner = append(x.inner, done)
		return done.Tx
	})
	return x, err
}

// keepOfFailed returns the transaction for another attempt at the message of x, which failed. It has nothing of that
// attempt, but for what a fault keeps.
func (w *world) keepOfFailed(x *tx) *engine.Tx[routedMessage] {
	again, e := x.Again(), x.Effects()
	switch w.cfg.Fault {
	case FailedOutputsKept:
		again.Collect(e.Out...)
	case SavepointNotUndone:
		for wr := range e.Writes.All() {
			if wr.Place == x.place() {
				st := again.State(x.key)
				if wr.Value == nil {
					_ = st.Delete(wr.Name)
				} else {
					_ = st.Set(wr.Name, wr.Value)
				}
			}
		}
	}
	x.Close()
	return again
}

// commitLocal makes all of x stand, in a power cut maybe not.
func (w *world) commitLocal(h workItem, x *tx) error {
	h.l.apply(h, x, false)
	for _, o := range x.effects.Out {
		w.transport.append(o)
	}
	w.actionCount++
	if err := w.recordHandled(h, x); err != nil {
		return err
	}
	if x.effects.Sync {
		w.transport.undo.makeDurable()
	}
	if h.kind == engine.FromPost {
		w.receivers.confirm(h.p.inbox[h.inboxIndex])
		h.p.inbox = slices.Delete(h.p.inbox, h.inboxIndex, h.inboxIndex+1)
	}
	if w.chance(10) && !w.cfg.OnlyPowerCuts {
		w.transport.undo.makeDurable()
	}
	if w.chance(300) {
		w.crash(h.p, "between commit and what follows it")
		return nil
	}
	w.handledAt, w.followedAction = w.now, w.actionCount
	for _, f := range x.effects.OnCommit {
		f()
	}
	return w.deferredErr
}

// callProcessor calls the processor of x; a panic of it is an error.
func (w *world) callProcessor(p *process, x *tx, m flow.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return p.processors[x.consumer].Process(flow.WithTx(context.Background(), x), x, m)
}

func describeOutputs(out []flow.Message) string {
	s := ""
	for _, m := range out {
		s += fmt.Sprintf(" → %s %s", m.Topic, m.ID[:min(6, len(m.ID))])
		if sn, err := flow.SnapshotFrom(m); err == nil && m.Type == flow.TypeSnapshot {
			s += fmt.Sprintf(" (version %d)", sn.N)
		}
	}
	return s
}
