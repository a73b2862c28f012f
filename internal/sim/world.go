package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sinks"
)

// start is when the virtual clock begins.
var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// world is one run: the transport, the stages over it, and everybody outside.
type world struct {
	cfg    Config
	rng    *rand.Rand
	now    time.Time
	latest time.Time // that the clock showed since everything was woken
	calm   bool      // nothing goes wrong any more
	steps  int
	t      *transport
	stats  Stats
	trace  []string

	expireAfter int // failed checks; less than 1 is never
	policy      policy
	offline     bool // nothing can be reached

	// What lives in the process: a crash loses it.
	procs    map[consumerID]pipeline.Processor
	delivery *sinks.Delivery
	checks   []*check
	attempts []sinks.Attempt
	inbox    []posted

	// overlapping is what a handler wrote that has not committed yet, while another runs.
	overlapping map[string]*[]byte

	// slow is a consumer that lags behind.
	slow consumerID

	// What lives outside.
	sites     []*site
	late      []pipeline.Message // outcomes that will come a second time
	receivers *receivers
	seen      []observation // what fetches saw, by the number in the outcome's header
	commands  int
	crashes   []int // at which steps
	waited    int   // how often in a row something was not ready for its message

	// incarnations is in which life of its page a subscription is, by its own.
	incarnations map[string]string

	// history is what index committed, by page; books what delivery did, by receiver.
	history map[string][]entry
	books   map[string]book
	// subscriptionOf names the subscription that a notification is for.
	subscriptionOf map[string]string
	broken         error // what was noticed where it could not be returned
	replays        int
}

// posted is the result of an attempt on its way to delivery.
type posted struct {
	message      pipeline.Message
	notification string
	attempt      uint64
	err          error // of the attempt
}

// policy is when notifications and receivers are given up.
type policy struct{ deadAfter, expireAfter time.Duration }

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)), now: start,
		latest: start, incarnations: make(map[string]string), history: make(map[string][]entry),
		books: make(map[string]book), subscriptionOf: make(map[string]string),
	}
	w.expireAfter = pick(w.rng, []int{10, 10, 5, -1})
	w.policy = pick(w.rng, []policy{{72 * time.Hour, 5 * 24 * time.Hour}, {20 * time.Minute, time.Hour}})
	w.t = newTransport(1 + w.rng.IntN(3))
	for i := range 1 + w.rng.IntN(3) {
		w.sites = append(w.sites, newSite(w.rng, i))
	}
	w.receivers = newReceivers()
	w.build()
	return w
}

func (w *world) tracef(format string, args ...any) {
	if w.cfg.Trace {
		w.trace = append(w.trace, fmt.Sprintf("%5d %s  ", w.steps, w.now.Format("02 15:04:05"))+fmt.Sprintf(format, args...))
	}
}

// chance is true once in n times, and never once things are calm.
func (w *world) chance(n int) bool { return !w.calm && w.rng.IntN(n) == 0 }

// consumers lists who reads what, in a fixed order.
var consumers = []consumerID{
	{pipeline.GroupIndex, pipeline.TopicDocuments},
	{pipeline.GroupFetch, pipeline.TopicRequests},
	{pipeline.GroupDiff, pipeline.TopicSnapshots},
	{pipeline.GroupMatch, pipeline.TopicSubscriptions},
	{pipeline.GroupMatch, pipeline.TopicChanges},
	deliveryConsumer,
	{pipeline.GroupDead, pipeline.TopicDead},
	{pipeline.GroupHealth, pipeline.TopicHealth},
}

var deliveryConsumer = consumerID{pipeline.GroupDelivery, pipeline.TopicNotifications}

// handleable is a message that a consumer can handle next.
type handleable struct {
	c       consumerID
	lane    int
	message pipeline.Message
	fromLog bool
	waker   bool
	posted  int // index into the inbox, if it came from there
}

// ready lists all that the stages can handle next, in a fixed order.
func (w *world) ready() []handleable {
	var hs []handleable
	for _, c := range consumers {
		for lane := range w.t.lanes {
			if m, ok := w.t.next(c, lane); ok {
				hs = append(hs, handleable{c: c, lane: lane, message: m, fromLog: true})
			}
		}
	}
	for _, id := range w.wakes() {
		if !w.t.wakes[id].at.After(w.now) {
			m := pipeline.Message{ID: "wake", Topic: id.topic, Key: id.key, Type: pipeline.TypeWake, Time: w.now}
			hs = append(hs, handleable{c: id.consumerID, message: m, waker: true})
		}
	}
	for i, p := range w.inbox {
		hs = append(hs, handleable{c: deliveryConsumer, message: p.message, posted: i})
	}
	return hs
}

// wakes lists the wakes that are set, in a fixed order.
func (w *world) wakes() []wakeID {
	return slices.SortedFunc(maps.Keys(w.t.wakes), func(a, b wakeID) int {
		return slices.Compare([]string{a.group, a.topic, a.key}, []string{b.group, b.topic, b.key})
	})
}

// handle lets a consumer handle one message: all that follows from it is committed, or
// nothing is.
func (w *world) handle(h handleable) error {
	x := w.t.begin(h.c, h.message.Key)
	if h.waker {
		x.woken[h.message.Key] = wake{} // it comes once, unless it is set again
	}
	err := w.process(h, x)
	if class, _ := pipeline.ClassOf(err); err != nil && class == pipeline.ClassNotYet {
		w.stats.Waits++
		w.waited++
		w.tracef("%v waits: %v", h.c, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%v: %s of %s: %w", h.c, h.message.Type, h.message.Key, err)
	}
	for name := range w.overlapping {
		if _, both := x.wrote[name]; both {
			return fmt.Errorf("%v: %s of %s writes %q, as another handler does at the same time", h.c, h.message.Type, h.message.Key, name)
		}
	}
	if x.foreign {
		return fmt.Errorf("%v: %s of %s touched the state of another key", h.c, h.message.Type, h.message.Key)
	}
	if w.chance(30) {
		w.stats.Nacks++
		w.tracef("%v %s of %s is dropped after it was handled", h.c, h.message.Type, h.message.Key)
		return nil
	}
	if w.overlapping == nil && w.chance(4) {
		if alive, err := w.meanwhile(h, x); !alive || err != nil {
			return err
		}
	}
	w.waited = 0
	w.t.commit(x, h.lane, h.fromLog)
	w.tracef("%v %s %s%s", h.c, h.message.Type, h.message.Key, describe(x.out))
	if err := w.record(h, x.out); err != nil {
		return err
	}
	if !h.fromLog && !h.waker {
		if i := h.posted; i < len(w.inbox) {
			w.receivers.confirmed(w.inbox[i].notification)
			w.inbox = slices.Delete(w.inbox, i, i+1)
		}
	}
	if w.chance(10) && !w.cfg.Stormy {
		w.t.sync()
	}
	if w.chance(300) {
		w.crash("between commit and what follows it")
		return nil
	}
	for _, f := range x.after {
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
	return w.procs[h.c].Process(pipeline.WithTx(context.Background(), x), x, h.message)
}

// meanwhile lets a consumer of the same group handle a message of the same key on another
// topic, between the handling of h and its commit, as lanes may. alive is false where the
// process did not survive that.
func (w *world) meanwhile(h handleable, x *tx) (alive bool, err error) {
	for _, other := range w.ready() {
		if other.c.group != h.c.group || other.c.topic == h.c.topic || other.message.Key != h.message.Key {
			continue
		}
		crashes := len(w.crashes)
		w.overlapping = x.wrote
		err := w.handle(other)
		w.overlapping = nil
		return len(w.crashes) == crashes, err
	}
	return true, nil
}

func describe(out []pipeline.Message) string {
	s := ""
	for _, m := range out {
		s += fmt.Sprintf(" → %s %s", m.Topic, m.ID[:min(6, len(m.ID))])
		if sn, err := pipeline.SnapshotFrom(m); err == nil && m.Type == pipeline.TypeSnapshot {
			s += fmt.Sprintf(" (version %d)", sn.N)
		}
	}
	return s
}
