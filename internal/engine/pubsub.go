// Package engine is the engine that the transports share. A lane has one handler for each group and
// topic, which gets messages one at a time. What the handler does is collected in a transaction, and
// the transport commits it together with the position of the message.
package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// Publish publishes messages whose contexts have the same transaction, or none.
type Publish func(topic string, msgs []*message.Message) error

// NewPublisher returns a Watermill publisher over publish. After Close, which closes nothing
// else, it fails with closed.
func NewPublisher(publish Publish, closed error) message.Publisher {
	return &publisher{publish: publish, closed: closed}
}

type publisher struct {
	publish  Publish
	closed   error
	isClosed atomic.Bool
}

func (p *publisher) Publish(topic string, msgs ...*message.Message) error {
	if p.isClosed.Load() {
		return p.closed
	}
	for len(msgs) > 0 {
		// Messages of one transaction are nearly always adjacent.
		tx, _ := flow.TxFrom(msgs[0].Context())
		n := 1
		for n < len(msgs) {
			if next, _ := flow.TxFrom(msgs[n].Context()); next != tx {
				break
			}
			n++
		}
		if err := p.publish(topic, msgs[:n]); err != nil {
			return err
		}
		msgs = msgs[n:]
	}
	return nil
}

func (p *publisher) Close() error {
	p.isClosed.Store(true)
	return nil
}

// Poster is a flow.Poster to the inboxes of a consumer.
type Poster struct {
	Topic string
	// Inbox returns the inbox of the lane of key, or why nothing can be posted.
	Inbox func(key string) (*Inbox, error)
	// Over is closed when the transport is, and Closed is the error from then on.
	Over   <-chan struct{}
	Closed error
}

var _ flow.Poster = Poster{}

// Post puts m into the inbox of its lane. It blocks while there is no room, until ctx is done or the
// transport is closed.
func (p Poster) Post(ctx context.Context, m flow.Message) error {
	in, err := p.Inbox(cmp.Or(m.Key, m.ID))
	if err != nil {
		return err
	}
	m.Topic, m.Time = p.Topic, m.Time.Round(0).UTC()
	return in.Post(ctx, &m, p.Over, p.Closed)
}

// Subscription is one channel of messages, which runners fill.
type Subscription struct {
	Out chan *message.Message
	// ctx is the parent of the contexts of messages.
	ctx     context.Context
	cancel  context.CancelFunc
	runners sync.WaitGroup
	// abandoned is closed when the subscription stops waiting for messages in flight.
	abandoned chan struct{}
	// closeOnce closes the subscription; see Subscriptions.end.
	closeOnce  func()
	subscriber *subscriber
}

// Seat is the place of the runner that serves a lane for a group. The zero Seat is free. Its users
// hold a lock.
type Seat[O any] struct {
	// Runner is the one that serves the lane; nil if there is none.
	Runner   *Runner[O]
	lastDone <-chan struct{} // closed when the last runner has ended
}

// Give makes subs serve the lane from now on, by the runner that start returns: that of its consumer, and those of the
// links of its chain in their order. Without any the lane has no runner. The runner of other subscriptions is stopped,
// and its successor begins when it has ended.
func (s *Seat[O]) Give(subs []*Subscription, start func() *Runner[O]) {
	old := s.Runner
	if old == nil && len(subs) == 0 || old != nil && slices.Equal(old.subs, subs) {
		return
	}
	if old != nil {
		close(old.stopping)
		s.Runner = nil
	}
	if len(subs) == 0 {
		return
	}
	r := start()
	r.subs, r.previousDone, r.done, r.stopping = subs, s.lastDone, make(chan struct{}), make(chan struct{})
	s.Runner, s.lastDone = r, r.done
	for _, sub := range subs {
		sub.runners.Add(1)
	}
	go r.run()
}

// Wait waits until the last runner has ended.
func (s *Seat[O]) Wait() {
	if s.lastDone != nil {
		<-s.lastDone
	}
}

// Consumer is a consumer group that reads a topic.
type Consumer struct{ Group, Topic string }

// Subscriptions are those of a transport. The subscriptions of a consumer share the lanes. Its fields are
// set before the first subscription.
type Subscriptions struct {
	// Open prepares the transport for a consumer.
	Open func(ctx context.Context, c Consumer) error
	// Assign makes the subscriptions that Of returns serve a lane, for all lanes of the transport. It is
	// called when the subscriptions of c have changed, which may be one of a chain.
	Assign func(c Consumer)
	// Grace is how long handlers may go on when a subscription is closed, until their contexts are
	// cancelled, and After how long they may take then.
	Grace, After time.Duration
	// Closed is the error of Subscribe after Close.
	Closed error

	mu       sync.Mutex
	isClosed bool
	// serving are the subscriptions that get lanes; all has those that are being closed as well.
	serving map[Consumer][]*Subscription
	all     map[*Subscription]bool
}

// Subscriber returns a Watermill subscriber of group. Its Close closes its subscriptions and returns when
// their channels are closed. After that Subscribe fails.
func (s *Subscriptions) Subscriber(group string) message.Subscriber {
	return &subscriber{subscriptions: s, group: group}
}

type subscriber struct {
	subscriptions *Subscriptions
	group         string
	isClosed      bool // guarded by subscriptions.mu
}

// Subscribe opens a subscription, which is closed when ctx is done.
func (b *subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	c, s := Consumer{b.group, topic}, b.subscriptions
	if s.refuses(b) {
		return nil, s.Closed
	}
	if err := s.Open(ctx, c); err != nil {
		return nil, err
	}
	sub := &Subscription{Out: make(chan *message.Message), abandoned: make(chan struct{}), subscriber: b}
	sub.ctx, sub.cancel = context.WithCancel(context.WithoutCancel(ctx))
	sub.closeOnce = sync.OnceFunc(func() { s.closeSubscription(c, sub) })
	if !s.add(c, sub) {
		return nil, s.Closed
	}
	s.Assign(c)
	unwatch := context.AfterFunc(ctx, sub.closeOnce)
	context.AfterFunc(sub.ctx, func() { unwatch() })
	return sub.Out, nil
}

// Close closes the subscriptions of b.
func (b *subscriber) Close() error {
	b.subscriptions.mu.Lock()
	b.isClosed = true
	b.subscriptions.mu.Unlock()
	b.subscriptions.closeAll(func(sub *Subscription) bool { return sub.subscriber == b })
	return nil
}

// Close closes all subscriptions and returns when their channels are closed.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	s.isClosed = true
	s.mu.Unlock()
	s.closeAll(func(*Subscription) bool { return true })
}

// closeAll closes subscriptions, all at the same time.
func (s *Subscriptions) closeAll(which func(*Subscription) bool) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, sub := range all {
		if which(sub) {
			wg.Go(sub.closeOnce)
		}
	}
	wg.Wait()
}

// refuses reports whether b can open no more subscriptions.
func (s *Subscriptions) refuses(b *subscriber) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isClosed || b.isClosed
}

// add adds sub, unless it is too late for that.
func (s *Subscriptions) add(c Consumer, sub *Subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed || sub.subscriber.isClosed {
		return false
	}
	if s.serving == nil {
		s.serving, s.all = make(map[Consumer][]*Subscription), make(map[*Subscription]bool)
	}
	s.serving[c] = append(s.serving[c], sub)
	s.all[sub] = true
	return true
}

// closeSubscription makes the runners of sub stop and closes its channel. Handlers of messages in flight have the time
// Grace until their contexts are cancelled, and then the time After to return.
func (s *Subscriptions) closeSubscription(c Consumer, sub *Subscription) {
	s.releaseLanes(c, sub)
	cancel := time.AfterFunc(s.Grace, sub.cancel)
	abandon := time.AfterFunc(s.Grace+s.After, func() { close(sub.abandoned) })
	sub.runners.Wait()
	cancel.Stop()
	abandon.Stop()
	sub.cancel()
	close(sub.Out)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sub)
}

// releaseLanes takes the lanes of sub away.
func (s *Subscriptions) releaseLanes(c Consumer, sub *Subscription) {
	s.mu.Lock()
	s.serving[c] = slices.DeleteFunc(s.serving[c], func(o *Subscription) bool { return o == sub })
	if len(s.serving[c]) == 0 {
		delete(s.serving, c)
	}
	s.mu.Unlock()
	s.Assign(c)
}

// Of returns the subscriptions that are to serve a lane for c: its own, and one for each consumer behind it. It returns
// none if one of them has none.
func (s *Subscriptions) Of(c Consumer, behind []Consumer, lane int) []*Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Subscription
	for i := range 1 + len(behind) {
		if i > 0 {
			c = behind[i-1]
		}
		subs := s.serving[c]
		if len(subs) == 0 {
			return nil
		}
		all = append(all, subs[lane%len(subs)])
	}
	return all
}

// Consumers returns the consumers that have subscriptions.
func (s *Subscriptions) Consumers() []Consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.serving))
}
