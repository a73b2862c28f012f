package local

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
)

// consumer is a group's share in a topic: a cursor in each lane, spread over the
// group's subscriptions.
type consumer struct {
	t       *Transport
	group   string
	topic   *topic
	cursors []*cursor
	// asleep says that no wakes come; idle that nobody here is to consume.
	asleep, idle bool
	// wakes is held while a batch that changes wakes is made and applied.
	wakes sync.Mutex

	mu   sync.Mutex
	subs []*subscription
}

func newConsumer(t *Transport, group string, tp *topic) *consumer {
	c := &consumer{t: t, group: group, topic: tp, asleep: slices.Contains(t.cfg.Asleep, group)}
	for _, l := range tp.lanes {
		cur := &cursor{c: c, lane: l, signal: make(chan struct{}, 1), inbox: make(chan flow.Message, mill.InboxSize)}
		if !tp.volatile || t.volatile {
			cur.place = fmt.Sprintf("%s/%s/%d/", t.db.ID(), tp.name, l.index)
		}
		cur.nextWake.Store(never)
		c.cursors = append(c.cursors, cur)
	}
	return c
}

// attach gives s its part of the lanes.
func (c *consumer) attach(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := len(c.subs) == 0
	c.subs = append(c.subs, s)
	c.assign(first)
}

// detach takes s's lanes away. What s has in flight it may finish.
func (c *consumer) detach(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs = slices.DeleteFunc(c.subs, func(o *subscription) bool { return o == s })
	c.assign(false)
}

// assign spreads the lanes over the subscriptions. A lane that moves is served by its
// new owner once the old one has finished. c.mu is held.
func (c *consumer) assign(first bool) {
	for i, cur := range c.cursors {
		var owner *subscription
		if len(c.subs) > 0 {
			owner = c.subs[i%len(c.subs)]
		}
		old := cur.run
		if old != nil && old.sub == owner {
			continue
		}
		if old == nil && owner == nil {
			continue
		}
		if old != nil && old.sub != nil {
			close(old.revoke)
		}
		if owner == nil {
			cur.run = &run{cur: cur, done: old.done}
			continue
		}
		r := &run{cur: cur, sub: owner, first: first, revoke: make(chan struct{}), done: make(chan struct{})}
		if old != nil {
			r.prev = old.done
		}
		cur.run = r
		owner.runs.Add(1)
		go r.loop()
	}
}

// leave takes the cursors of a consumer that could not be registered out of their lanes.
func (c *consumer) leave() {
	for _, cur := range c.cursors {
		l := cur.lane
		l.mu.Lock()
		l.cursors = slices.DeleteFunc(l.cursors, func(o *cursor) bool { return o == cur })
		l.mu.Unlock()
	}
}
