package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

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
