package local

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
)

// topic is a named set of lanes.
type topic struct {
	name string
	// declared is what the configuration says of the topic.
	declared Topic
	// volatile says that the store has no logs and positions of the topic.
	volatile bool
	lanes    []*laneLog
	// keptBytes is the size of the messages that a topic without groups keeps, in bytes.
	keptBytes atomic.Int64

	mu     sync.Mutex
	groups map[string]*consumer
}

// isRead reports whether a group reads the log.
func (tp *topic) isRead() bool {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return len(tp.groups) > 0
}

// topic returns the topic called name, and creates it if there is none.
func (t *Transport) topic(name string) *topic {
	t.mu.RLock()
	tp := t.topics[name]
	t.mu.RUnlock()
	if tp != nil {
		return tp
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if tp := t.topics[name]; tp != nil {
		return tp
	}
	declared := t.cfg.Topics[name]
	tp = &topic{name: name, declared: declared, volatile: t.volatile || declared.Ephemeral, groups: map[string]*consumer{}}
	for i := range t.lanes {
		tp.lanes = append(tp.lanes, &laneLog{topic: tp, index: i, lockOrder: len(t.topics)*t.lanes + i})
	}
	t.topics[name] = tp
	return tp
}

// addConsumer adds c to its topic, whose lanes keep their messages for it from then on. The caller holds c.topic.mu.
func (t *Transport) addConsumer(c *consumer) {
	for _, cur := range c.cursors {
		cur.joinLane()
	}
	c.topic.groups[c.group] = c
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cursors = append(t.cursors, c.cursors...)
}

// allCursors lists the cursors of all groups.
func (t *Transport) allCursors() []*cursor {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.cursors
}

// consumer returns the consumer of group in a topic. A new group begins at the oldest message
// kept. From then on messages are kept for it.
func (t *Transport) consumer(group string, tp *topic) (*consumer, error) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if c := tp.groups[group]; c != nil {
		return c, nil
	}
	c := newConsumer(t, group, tp)
	if !tp.volatile {
		if err := t.storeFirstPositions(c); err != nil {
			return nil, err
		}
	}
	t.addConsumer(c)
	return c, nil
}

// storeFirstPositions stores the first position of c.
func (t *Transport) storeFirstPositions(c *consumer) error {
	return t.db.Write(true, func(b *store.Batch) error {
		for _, l := range c.topic.lanes {
			l.mu.Lock()
			b.SetPosition(c.group, c.topic.name, l.index, l.low)
			l.mu.Unlock()
		}
		return nil
	})
}

// abandonAfter is how long handlers may run after their contexts were cancelled.
const abandonAfter = time.Second

// Subscriber returns a Watermill subscriber for a consumer group. Subscribe returns one channel
// for the messages of all lanes. Several subscriptions of a group share the lanes. When a
// subscription is closed, the context of a message in flight is cancelled only after
// Config.Grace. Close closes the subscriptions of this subscriber, and returns when their
// channels are closed.
func (t *Transport) Subscriber(group string) message.Subscriber { return t.subs.Subscriber(group) }

// openConsumer makes sure that c exists.
func (t *Transport) openConsumer(_ context.Context, c engine.Consumer) error {
	c = t.chain.HeadOf(c)
	_, err := t.consumer(c.Group, t.topic(c.Topic))
	return err
}

// assign divides the lanes of a topic among the subscriptions of a group, those of a chain together.
func (t *Transport) assign(to engine.Consumer) {
	to = t.chain.HeadOf(to)
	c, err := t.consumer(to.Group, t.topic(to.Topic))
	if err != nil {
		return // it exists since openConsumer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !slices.ContainsFunc(c.cursors, func(cur *cursor) bool { return cur.seat.Runner != nil })
	for i, cur := range c.cursors {
		if first {
			cur.startWakesPending.Store(true)
		}
		cur.seat.Give(t.subs.Of(to, t.chain.Behind(to), i), cur.newRunner)
	}
}
