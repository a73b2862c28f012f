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

	// uncommittedWrites is what a handler wrote that has not committed yet, while another runs.
	uncommittedWrites map[string][]byte

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
	waitsInARow      int // how often in a row something was not ready for its message

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
	{Group: flow.GroupDiff, Topic: flow.TopicSnapshots},
	{Group: flow.GroupMatch, Topic: flow.TopicSubscriptions},
	{Group: flow.GroupMatch, Topic: flow.TopicChanges},
	deliveryConsumer,
	{Group: flow.GroupDead, Topic: flow.TopicDead},
	{Group: flow.GroupHealth, Topic: flow.TopicHealth},
}

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

// handle lets a consumer handle one message: all that follows from it is committed, or
// nothing is.
func (w *world) handle(h workItem) error {
	x := w.transport.beginTx(h)
	err := w.callProcessor(h, x)
	if class, _ := failure.ClassOf(err); err != nil && class == failure.ClassNotYet {
		w.stats.Waits++
		w.waitsInARow++
		w.tracef("%v waits: %v", h.c, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%v: %s of %s: %w", h.c, h.message.Type, h.message.Key, err)
	}
	wrote := x.writtenValues()
	for name := range w.uncommittedWrites {
		if _, both := wrote[name]; both {
			return fmt.Errorf("%v: %s of %s writes %q, as another handler does at the same time", h.c, h.message.Type, h.message.Key, name)
		}
	}
	if x.touchedOtherKey {
		return fmt.Errorf("%v: %s of %s touched the state of another key", h.c, h.message.Type, h.message.Key)
	}
	if w.chance(30) {
		w.stats.Nacks++
		if h.c.Group == flow.GroupIndex {
			w.droppedPages[h.message.Key] = true
		}
		w.tracef("%v %s of %s is dropped after it was handled", h.c, h.message.Type, h.message.Key)
		return nil
	}
	if w.uncommittedWrites == nil && w.chance(4) {
		if alive, err := w.interleave(h, x); !alive || err != nil {
			return err
		}
	}
	if err := x.collectEffects(); err != nil {
		return err
	}
	w.waitsInARow = 0
	w.tracef("%d: %v %s %s%s", h.p.id, h.c, h.message.Type, h.message.Key, describeOutputs(x.emittedMessages()))
	if w.usesKafka() {
		return errors.Join(w.addToBatch(h, x), w.deferredErr)
	}
	return w.commitLocal(h, x)
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

// callProcessor calls the processor of h; a panic of it is an error.
func (w *world) callProcessor(h workItem, x *tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return h.p.processors[h.c].Process(flow.WithTx(context.Background(), x), x, h.message)
}

// interleave lets a consumer of the same group handle a message of the same key on another
// topic, between the handling of h and its commit, as lanes may. alive is false where the
// process did not survive that.
func (w *world) interleave(h workItem, x *tx) (alive bool, err error) {
	tenure := h.l.tenure
	for _, other := range h.p.readyWork() {
		if other.l != h.l || other.c.Group != h.c.Group || other.c.Topic == h.c.Topic || other.message.Key != h.message.Key {
			continue
		}
		w.uncommittedWrites = x.writtenValues()
		err := w.handle(other)
		w.uncommittedWrites = nil
		return h.p.lanes[h.l.id] == h.l && h.l.tenure == tenure, err
	}
	return true, nil
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
