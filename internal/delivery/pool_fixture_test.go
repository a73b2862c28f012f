package delivery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// poolFixture is a Delivery with its pool over a Store, with one lane, for use in a synctest
// bubble.
type poolFixture struct {
	t     *testing.T
	store *txtest.Store
	d     *Delivery
	inbox chan flow.Message
	// dropsResult says which results the lane drops.
	dropsResult func(flow.Message) bool
	stop        func()

	mu sync.Mutex // guards store while the lane runs, and what follows
	// dead, health and commands are what was emitted.
	dead     []flow.Message
	health   []pipeline.Health
	commands []flow.Message
}

// newPoolFixture starts a process on store.
func newPoolFixture(t *testing.T, store *txtest.Store, cfg Config) *poolFixture {
	r := &poolFixture{t: t, store: store, inbox: make(chan flow.Message), dropsResult: func(flow.Message) bool { return false }}
	cfg.Poster = r
	if cfg.Jitter == nil {
		cfg.Jitter = func() float64 { return 0 }
	}
	r.d = NewDelivery(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	lanes, endLanes := context.WithCancel(t.Context())
	var pool, lane sync.WaitGroup
	pool.Go(func() {
		if err := r.d.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	lane.Go(func() { r.runLane(lanes) })
	for _, m := range store.Start(time.Now()) {
		r.send(m)
	}
	r.stop = func() {
		cancel()
		pool.Wait()
		endLanes()
		lane.Wait()
	}
	return r
}

// runLane handles messages and wakes, one after the other.
func (r *poolFixture) runLane(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case m := <-r.inbox:
			r.handle(m)
		case <-tick.C:
			for _, m := range r.store.Due(time.Now()) {
				r.handle(m)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *poolFixture) handle(m flow.Message) {
	if m.Type == typeResult && r.dropsResult(m) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.Handle(r.t.Context(), r.d, m); err != nil {
		r.t.Errorf("%s: %v", m.Type, err)
	}
	for _, m := range r.store.Take() {
		switch m.Topic {
		case flow.TopicDead:
			r.dead = append(r.dead, m)
		case flow.TopicHealth:
			h, err := flow.HealthFrom(m)
			if err != nil {
				r.t.Error(err)
			}
			r.health = append(r.health, h)
		default:
			r.commands = append(r.commands, m)
		}
	}
}

// events are the health events so far, in words.
func (r *poolFixture) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var es []string
	for _, h := range r.health {
		es = append(es, h.Receiver.Sink+" "+string(h.Event))
	}
	return es
}

func (r *poolFixture) send(m flow.Message) { r.inbox <- m }

// Post is that of a pipeline.Poster.
func (r *poolFixture) Post(ctx context.Context, m flow.Message) error {
	select {
	case r.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *poolFixture) notify(receiver, id string) { r.send(notification(r.t, receiver, "", id)) }

// notification is the message of one to receiver, of a subscription.
func notification(t *testing.T, receiver, subscription, id string) flow.Message {
	t.Helper()
	m, err := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: receiver}, Document: "doc", Subscription: subscription,
		Notification: pipeline.Notification{ID: id, URL: "https://Example.com"},
	}.Message()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func withdrawal(receiver, subscription string) flow.Message {
	return flow.Withdraw{Receiver: pipeline.Receiver{Sink: receiver}, Subscription: subscription, Page: "https://example.com/"}.Message(t0)
}

// queue returns the queue of the receiver once what is due now is handled.
func (r *poolFixture) queue(receiver string) Queue {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := state{r.store.Begin().State(receiver)}.loadQueue()
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// recorder is a sink that counts, and does what it is told.
type recorder struct {
	mu    sync.Mutex
	calls []string
	do    func(ctx context.Context, n pipeline.Notification) error
}

func (s *recorder) Deliver(ctx context.Context, n pipeline.Notification) error {
	s.mu.Lock()
	s.calls = append(s.calls, n.ID)
	do := s.do
	s.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx, n)
}

func (s *recorder) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.calls)
}
