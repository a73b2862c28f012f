package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Config is what NewDelivery needs. Only Sinks and Poster have no default.
type Config struct {
	// Sinks are the sinks by the names that receivers have. A notification for a name that
	// is missing is tried again by the schedule, so nothing is lost when one is renamed.
	Sinks map[string]pipeline.Sink
	// Poster brings the results of attempts to Process, in the lane of their receiver.
	Poster pipeline.Poster
	// Policy says when attempts are made and when notifications are given up.
	Policy Policy
	// Fast is how many attempts are made at once, 128 by default. After a second an attempt
	// moves from there into one of the Slow slots, 2,048 by default; where those are full
	// it is cut short, as a failure.
	Fast, Slow int
	// AttemptTimeout ends an attempt; 20 s by default.
	AttemptTimeout time.Duration
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Jitter returns numbers in [0, 1) that spread retries; by default random ones. It is
	// called from many goroutines.
	Jitter func() float64
	// Logger hears of receivers that begin to fail, fail for another reason, recover; nil
	// means nobody does.
	Logger *slog.Logger
	// Observe is told of each notification that was delivered or given up.
	Observe pipeline.Observer
	// Hand, if it is set, is given the attempts to make in place of the pool: for tests and
	// simulators. It must not block. Attempt.Result makes the message that Process expects
	// in return.
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
		c.AttemptTimeout = 20 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Policy = c.Policy.withDefaults()
	c.Sinks = maps.Clone(c.Sinks)
}

// Delivery is the processor of TopicNotifications. It keeps the queue of each receiver
// in that receiver's state, and Run makes the attempts.
type Delivery struct {
	cfg  Config
	book book
	pool *pool
	hand func(Attempt)
}

var _ pipeline.Processor = (*Delivery)(nil)

// NewDelivery returns a Delivery that makes no attempts until Run is called.
func NewDelivery(cfg Config) *Delivery {
	cfg.setDefaults()
	d := &Delivery{cfg: cfg, book: book{entries: make(map[string]entry)}}
	d.pool = newPool(&d.cfg, &d.book)
	d.hand = d.pool.hand
	if cfg.Hand != nil {
		d.hand = cfg.Hand
	}
	return d
}

// Run makes attempts until ctx is done. Then it begins no more, breaks off those that
// are under way, which do not count, and returns nil when all have ended. It can be
// called once.
func (d *Delivery) Run(ctx context.Context) error { return d.pool.run(ctx) }

// Idle reports whether no attempt is under way, waiting to begin, or ended without its
// result having been posted.
func (d *Delivery) Idle() bool { return d.pool.idle() }

// Backlog counts the pending notifications: due are those of receivers with an attempt
// under way or due within horizon, parked all others. It knows what was handled since
// the start; that is everything once the wakes of the start have been handled.
func (d *Delivery) Backlog(horizon time.Duration) (due, parked int) {
	return d.book.backlog(d.cfg.Now().Add(horizon))
}

// typeResult is the type of the messages by which the pool reports.
const typeResult = "vokter.delivery.result.v1"

// Process handles a notification, a wake or the result of an attempt.
func (d *Delivery) Process(_ context.Context, tx pipeline.Tx, m pipeline.Message) error {
	switch m.Type {
	case pipeline.TypeNotification:
		return d.enqueue(tx, m)
	case typeResult:
		return d.result(tx, m)
	case pipeline.TypeWake:
		return d.wake(tx, m)
	}
	return pipeline.Permanent(fmt.Errorf("delivery: message %s has the unknown type %q", m.ID, m.Type))
}

// enqueue puts a notification behind the others of its receiver, unless it is there or
// was delivered before.
func (d *Delivery) enqueue(tx pipeline.Tx, m pipeline.Message) error {
	var a pipeline.Addressed
	if err := json.Unmarshal(m.Body, &a); err != nil {
		return pipeline.Permanent(fmt.Errorf("delivery: notification %s: %w", m.ID, err))
	}
	if a.Receiver.ID() != m.Key || a.Notification.ID == "" {
		return pipeline.Permanent(fmt.Errorf("delivery: notification %s: its key is not its receiver, or it has no ID", m.ID))
	}
	w, err := d.open(tx, m.Key)
	if err != nil {
		return err
	}
	known, err := w.st.known(a.Notification.ID)
	if err != nil || known {
		return err
	}
	p := pendingRecord{Addressed: a, Trace: m.Header[pipeline.HeaderTrace]}
	if err := w.st.add(w.q.Next, p); err != nil {
		return err
	}
	if w.q.InFlight && !d.book.knows(m.Key, w.q.Attempt) {
		// It went down with an earlier process, and the wake of the start is yet to come.
		w.q.InFlight = false
	}
	return w.step(Enqueued{At: w.now})
}

// result applies how an attempt ended. The commit is durable before the next attempt,
// so that only a crash before it repeats a delivery.
func (d *Delivery) result(tx pipeline.Tx, m pipeline.Message) error {
	var r result
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return pipeline.Permanent(fmt.Errorf("delivery: result %s: %w", m.ID, err))
	}
	w, err := d.open(tx, m.Key)
	if err != nil {
		return err
	}
	if !w.q.InFlight || r.Attempt != w.q.Attempt {
		return nil
	}
	pipeline.SyncTx(tx)
	return w.step(Resulted{At: w.now, Attempt: r.Attempt, Outcome: r.Outcome, Jitter: d.cfg.Jitter()})
}

// wake looks at a receiver again. An attempt in flight that this process does not
// know of died with an earlier process, or its result was lost.
func (d *Delivery) wake(tx pipeline.Tx, m pipeline.Message) error {
	w, err := d.open(tx, m.Key)
	if err != nil {
		return err
	}
	if w.q.InFlight && !d.book.inFlight(m.Key, w.q.Attempt, w.now) {
		return w.step(Lost{At: w.now})
	}
	return w.step(Woken{At: w.now})
}
