// Package delivery delivers notifications to sinks. Each receiver has a queue of its own: one
// attempt at a time, in order, so a receiver that fails holds up nobody but itself.
//
// The queue is a pure state machine (Policy.apply). Delivery drives it as the processor of
// the topic of notifications, with its state in the transaction. A pool makes the attempts
// outside of any transaction.
package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what NewDelivery needs. Only Sinks and Poster have no default.
type Config struct {
	// Sinks are the sinks by name. A notification for a name that is missing is retried by
	// the schedule, so nothing is lost when a sink is renamed.
	Sinks map[string]pipeline.Sink
	// SinkOf returns the sink of a name that Sinks does not have, or nil. These sinks are not
	// closed. It must be safe for concurrent use and must not block. Default: there are none.
	SinkOf func(name string) pipeline.Sink
	// Poster passes the results of attempts to Process, in the lane of their receiver.
	Poster flow.Poster
	// Owned reports whether this process owns a receiver, given by its sink; nil means all. It
	// must not block.
	Owned func(receiver string) bool
	// Epoch returns a number that changes each time that this process gets a receiver. An attempt of an
	// earlier epoch counts as not made. nil means that the process keeps all receivers. It must not block.
	Epoch func(receiver string) uint64
	// Policy says when attempts are repeated and when notifications are given up.
	Policy Policy
	// Fast is how many attempts are made at once, 128 by default. After a second an attempt
	// moves into one of the Slow slots, 2,048 by default. If those are full it is canceled,
	// which counts as a failure.
	Fast, Slow int
	// AttemptTimeout ends an attempt of a sink without a timeout of its own;
	// pipeline.DefaultTimeout by default.
	AttemptTimeout time.Duration
	// Link returns the address of a web page about a notification of a document, or "". Default: there
	// is none.
	Link func(document string, n pipeline.Notification) string
	// Source returns the Source of notifications. Default: they have none.
	Source func() string
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Jitter returns numbers in [0, 1) that spread retries; by default random ones. It must
	// be safe for concurrent use.
	Jitter func() float64
	// Logger logs when a receiver begins to fail, fails for another reason, or recovers; nil
	// means no log.
	Logger *slog.Logger
	// Observe is called for each notification that was delivered, given up or dropped.
	Observe flow.Observer
	// Tracer gets a span of each attempt to deliver a notification.
	Tracer span.Tracer
	// Hand replaces the pool, for callers that make the attempts themselves. It must not block.
	// The result goes back to Process as the message that Attempt.Result returns.
	Hand func(Attempt)
}

func (c *Config) setDefaults() {
	if c.Fast <= 0 {
		c.Fast = 128
	}
	if c.Slow <= 0 {
		c.Slow = 2048
	}
	if c.AttemptTimeout <= 0 {
		c.AttemptTimeout = pipeline.DefaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Owned == nil {
		c.Owned = func(string) bool { return true }
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Epoch == nil {
		c.Epoch = func(string) uint64 { return 0 }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
}

// sink returns the sink of name in s, or nil.
func (c *Config) sink(s *settings, name string) pipeline.Sink {
	if sink, ok := s.sinks[name]; ok || c.SinkOf == nil {
		return sink
	}
	return c.SinkOf(name)
}

// timeout returns how long an attempt of s may take.
func (c *Config) timeout(s pipeline.Sink) time.Duration {
	return cmp.Or(registry.TimeoutOf(s), c.AttemptTimeout)
}

func (c *Config) closeFailed(err error) {
	c.Logger.Warn("a sink could not be closed in order", "err", oneLine(err.Error()))
}

// LongestAttempt returns the longest timeout of all sinks.
func (d *Delivery) LongestAttempt() time.Duration {
	live := d.live.acquire()
	defer d.live.release(live, d.cfg.closeFailed)
	longest := d.cfg.AttemptTimeout
	for _, s := range live.sinks {
		longest = max(longest, registry.TimeoutOf(s))
	}
	return longest
}

// Delivery is the processor of TopicNotifications. It keeps the queue of each receiver
// in that receiver's state, and Run makes the attempts.
type Delivery struct {
	cfg      Config
	live     liveSettings
	pool     *pool
	handOver func(*inFlightAttempt)
	// queues are the queues of receivers as they were stored last.
	queues *stored.Committed[Queue]
	// endingDigests says that each digest ends as soon as it begins; see EndDigests.
	endingDigests atomic.Bool
}

var _ flow.Processor = (*Delivery)(nil)

// NewDelivery returns a Delivery that makes no attempts until Run is called.
func NewDelivery(cfg Config) *Delivery {
	cfg.setDefaults()
	d := &Delivery{cfg: cfg, live: liveSettings{users: make(map[*settings]int)}, queues: stored.NewCommitted[Queue](cachedQueues)}
	d.Reconfigure(cfg.Sinks, cfg.Policy)
	d.pool = newPool(&d.cfg, &d.live)
	d.handOver = d.pool.accept
	if cfg.Hand != nil {
		d.handOver = func(f *inFlightAttempt) { cfg.Hand(f.Attempt) }
	}
	return d
}

// Reconfigure replaces Config.Sinks and Config.Policy. A running attempt keeps the sink that it
// began with. Each old sink that is an io.Closer and is not among the new ones is closed when
// no attempt uses it any more. It is safe for concurrent use.
func (d *Delivery) Reconfigure(sinks map[string]pipeline.Sink, policy Policy) {
	next := &settings{sinks: maps.Clone(sinks), policy: policy.withDefaults()}
	before, unused := d.live.replace(next)
	if before != nil {
		d.pool.updateRates(before.sinks)
	}
	closeAll(unused, d.cfg.closeFailed)
}

// Run makes attempts until ctx is done. Then it cancels the running attempts, which does not
// count as a failure, waits until they have ended and their results are posted, and returns nil. It fails if it
// is called twice. The sinks stay open: Process needs them, and Reconfigure without sinks closes them.
func (d *Delivery) Run(ctx context.Context) error { return d.pool.run(ctx) }

// Settled reports whether no result is on its way that an attempt of this process posted.
func (d *Delivery) Settled() bool { return !d.pool.hasPostedResults(d.cfg.Owned) }

// Try calls the sink called name with n once, beside the notifications that wait for it, and returns its
// error. known is false where there is no such sink.
func (d *Delivery) Try(ctx context.Context, name string, n pipeline.Notification) (known bool, err error) {
	live := d.live.acquire()
	defer d.live.release(live, d.cfg.closeFailed)
	sink := d.cfg.sink(live, name)
	if sink == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.timeout(sink))
	defer cancel()
	a := Attempt{Receiver: pipeline.Receiver{Sink: name}, Notifications: []pipeline.Notification{n}, contexts: make([]attemptContext, 1)}
	return true, d.pool.deliver(ctx, sink, a, 0).err
}

// Idle reports whether no attempt runs, waits to begin, or has a result that was not posted
// yet. An attempt that the rate of its sink holds for longer than horizon does not count.
func (d *Delivery) Idle(horizon time.Duration) bool { return d.pool.isIdle(d.cfg.Now().Add(horizon)) }

// Backlog counts the pending notifications, and those in digests. due are those of receivers
// with an attempt that runs or may begin within horizon, and of digests that end by then; parked
// are all others, such as those of a paused receiver. Receivers of another process do not count. A receiver is known from its first
// message in this process on; every one with pending notifications gets a wake at the start.
func (d *Delivery) Backlog(horizon time.Duration) (due, parked int) {
	live := d.live.acquire()
	defer d.live.release(live, d.cfg.closeFailed)
	return d.pool.backlog(d.cfg.Now().Add(horizon), d.cfg.Owned, func(receiver string) bool { return live.policy.Receivers[receiver].Paused })
}

// Waiting counts the notifications that Backlog counts, without those in digests.
func (d *Delivery) Waiting() int { return d.pool.countPending(d.cfg.Owned) }

// Oldest returns for how long the pending notification has been tried that is tried for longest. It
// is 0 where no notification is. Receivers of another process do not count.
func (d *Delivery) Oldest() time.Duration {
	first := d.pool.earliestTry(d.cfg.Owned)
	if first.IsZero() {
		return 0
	}
	return max(d.cfg.Now().Sub(first), 0)
}

// EndDigests ends all digests now, and every later one as soon as it begins. It is for a process
// that ends and does not keep its state. It returns when it has posted a wake for each receiver,
// or ctx is done. It misses a digest that a concurrent transaction begins: call it again when
// the lanes are idle.
func (d *Delivery) EndDigests(ctx context.Context) error {
	d.endingDigests.Store(true)
	for _, receiver := range d.pool.receiversWithDigests() {
		m := flow.WakeMessage(flow.GroupDelivery, flow.TopicNotifications, receiver, d.cfg.Now())
		if err := d.cfg.Poster.Post(ctx, *m); err != nil {
			return err
		}
	}
	return nil
}

// typeResult is the type of the messages that carry the result of an attempt.
const typeResult = "vokter.delivery.result.v1"

// Process handles a notification, a withdrawal, a retry, a wake, the result of an attempt or a nudge.
func (d *Delivery) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	switch m.Type {
	case flow.TypeAddressed:
		return d.handleNotification(tx, m)
	case flow.TypeWithdraw:
		return d.handleWithdraw(tx, m)
	case flow.TypeRetry:
		return d.handleRetry(tx, m)
	case typeResult:
		return d.handleResult(tx, m)
	case typeNudge:
		return d.handleNudge(tx, m)
	case flow.TypeWake:
		return d.handleWake(tx, m)
	}
	return m.UnknownType(flow.GroupDelivery)
}

// handleNotification appends a notification to the queue of its receiver, or to the digest of its
// subscription. It ignores a known one that is not replayed, and drops one whose subscription
// was cancelled.
func (d *Delivery) handleNotification(tx flow.Tx, m flow.Message) error {
	var a flow.Addressed
	if err := json.Unmarshal(m.Body, &a); err != nil {
		return failure.Permanent(fmt.Errorf("delivery: notification %s: %w", m.ID, err))
	}
	if a.Receiver.Sink != m.Key || a.Notification.ID == "" {
		return failure.Permanent(fmt.Errorf("delivery: notification %s: its key is not its receiver, or it has no ID", m.ID))
	}
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	replayed := m.Header[flow.HeaderReplay] == "1"
	if deliver, err := w.mustDeliver(a.Notification.ID, replayed); err != nil || !deliver {
		return err
	}
	if w.hasMarkers {
		switch withdrawn, err := w.st.isWithdrawn(a.Subscription); {
		case err != nil:
			return err
		case withdrawn:
			return w.dropNew(a)
		}
	}
	p := pendingRecord{Addressed: a, Trace: m.Trace, Replayed: replayed}
	if into, ok := w.windowFor(a, replayed); ok {
		if err := w.collectIntoWindow(p, into); err != nil {
			return err
		}
		return w.applyAndStore(woken{At: w.now})
	}
	if !replayed {
		if err := w.flushBefore(a); err != nil {
			return err
		}
	}
	if err := w.st.addPending(w.q.Next, p); err != nil {
		return err
	}
	w.newPending, w.newSeq = &p, w.q.Next
	return w.applyAndStore(enqueued{At: w.now})
}

// mustDeliver reports whether the notification id must be delivered: it is unknown, or it is
// replayed and neither pending nor in a digest that is. It deletes what is recorded of a replayed one.
func (w *unitOfWork) mustDeliver(id string, replayed bool) (bool, error) {
	r, known, err := w.st.record(id)
	if err != nil || !known || !replayed {
		return !known, err
	}
	in := r
	if r.State == recordDigested {
		if in, _, err = w.st.record(r.In); err != nil {
			return false, err
		}
	}
	if in.State == RecordPending || in.State == RecordCollected {
		return false, nil
	}
	return true, w.st.deleteEnded(id, r)
}

// dropNew records that a new notification is dropped, since its subscription was cancelled before.
func (w *unitOfWork) dropNew(a flow.Addressed) error {
	w.observe(flow.KindDropped, a, "")
	err := w.st.setEnded(a.Notification.ID, Record{State: RecordDropped, Time: w.now})
	return errors.Join(err, w.applyAndStore(recordStored{At: w.now}))
}

// handleWithdraw records that a subscription was cancelled, and drops its notifications.
func (d *Delivery) handleWithdraw(tx flow.Tx, m flow.Message) error {
	var wd flow.Withdraw
	if err := json.Unmarshal(m.Body, &wd); err != nil {
		return failure.Permanent(fmt.Errorf("delivery: withdrawal %s: %w", m.ID, err))
	}
	if wd.Receiver.Sink != m.Key || wd.Subscription == "" {
		return failure.Permanent(fmt.Errorf("delivery: withdrawal %s: its key is not its receiver, or it names no subscription", m.ID))
	}
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	if known, err := w.st.isWithdrawn(wd.Subscription); err != nil || known {
		return err
	}
	if err := w.st.markWithdrawn(wd.Subscription, withdrawnMarker{Next: w.q.Next}, w.now); err != nil {
		return err
	}
	w.hasMarkers = true
	for _, sink := range w.passTargets() {
		wd.Receiver.Sink = sink
		tx.Emit(wd.Message(w.now))
	}
	if err := w.dropWindow(wd.Subscription); err != nil {
		return err
	}
	if attempt := w.q.Attempt; w.q.InFlight {
		tx.OnCommit(func() { d.pool.cancelWithdrawn(m.Key, attempt, wd.Subscription) })
	}
	return w.applyAndStore(recordStored{At: w.now, Markers: 1})
}

// handleRetry makes the pending notifications of a receiver due now. A command that names a page
// does so only if one of them is about that page.
func (d *Delivery) handleRetry(tx flow.Tx, m flow.Message) error {
	var c flow.RetryCommand
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return failure.Permanent(fmt.Errorf("delivery: retry %s: %w", m.ID, err))
	}
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	waiting := w.q.Pending()
	if c.Page != "" {
		if waiting, err = w.st.countPending(w.q, c.Page); err != nil {
			return err
		}
	}
	if waiting == 0 {
		return nil
	}
	return w.applyAndStore(retryRequested{At: w.now})
}

// handleResult applies the result of an attempt. It ignores that of an earlier attempt. The commit is
// durable before the next attempt begins, so that only a crash before the commit repeats a delivery.
func (d *Delivery) handleResult(tx flow.Tx, m flow.Message) error {
	var r resultBody
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return failure.Permanent(fmt.Errorf("delivery: result %s: %w", m.ID, err))
	}
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	if !w.q.InFlight || r.Attempt != w.q.Attempt {
		return nil
	}
	if len(r.DeliveredBefore) >= w.q.Pending() {
		return failure.Permanent(fmt.Errorf("delivery: result %s: it delivered %d notifications and tried another, of %d", m.ID, len(r.DeliveredBefore), w.q.Pending()))
	}
	tx.Sync()
	w.endedAttempt = d.pool.findAttempt(m.Key, r.Attempt, w.epoch)
	ev := attemptEnded{At: w.now, Ready: r.Ready, Attempt: r.Attempt, DeliveredBefore: len(r.DeliveredBefore), Outcome: r.attemptOutcome, Jitter: d.cfg.Jitter()}
	for i, said := range append(r.DeliveredBefore, r.sinkReport) {
		if err := w.storeNote(w.q.Head+uint64(i), said.Note); err != nil {
			return err
		}
		ev.Degraded = cmp.Or(ev.Degraded, said.Degraded)
	}
	if !r.Delivered && r.Class != failure.ClassCanceled {
		tx.OnCommit(func() {
			d.cfg.Observe.Note(flow.Observation{Kind: flow.KindAttempt, Time: w.now, Sink: w.key, Class: r.Class.String()})
		})
	}
	return w.applyAndStore(ev)
}

// handleWake checks a receiver: it begins an attempt that is due, and ends the digests that are. An
// attempt in flight whose result will not come is repeated.
func (d *Delivery) handleWake(tx flow.Tx, m flow.Message) error {
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	missing := w.q.InFlight && !d.pool.isResultExpected(m.Key, w.q.Attempt, w.epoch)
	flush := w.flushDue
	if d.endingDigests.Load() {
		flush = w.flushAll
	}
	if err := flush(); err != nil {
		return err
	}
	if missing {
		return w.applyAndStore(attemptLost{At: w.now})
	}
	return w.applyAndStore(woken{At: w.now})
}
