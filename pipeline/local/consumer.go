package local

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

// consumer is a group as the consumer of a topic. It has a cursor in each lane. The lanes are
// divided among the group's subscriptions.
type consumer struct {
	t       *Transport
	group   string
	topic   *topic
	cursors []*cursor
	// asleep says that wakes are not delivered, idle that this Transport does not consume for
	// the group.
	asleep, idle bool
	// wakes is held while a batch that changes wakes is built and applied.
	wakes sync.Mutex

	mu   sync.Mutex
	subs []*subscription
}

func newConsumer(t *Transport, group string, tp *topic) *consumer {
	c := &consumer{t: t, group: group, topic: tp, asleep: slices.Contains(t.cfg.Asleep, group)}
	for _, l := range tp.lanes {
		cur := &cursor{c: c, lane: l, signal: make(chan struct{}, 1), inbox: make(chan flow.Message, mill.InboxSize), wakes: mill.NewWakes()}
		if !tp.volatile || t.volatile {
			cur.place = fmt.Sprintf("%s/%s/%d/", t.db.ID(), tp.name, l.index)
		}
		c.cursors = append(c.cursors, cur)
	}
	return c
}

// attach gives s its share of the lanes.
func (c *consumer) attach(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := len(c.subs) == 0
	c.subs = append(c.subs, s)
	c.assign(first)
}

// detach takes the lanes of s away. s may finish the messages in flight.
func (c *consumer) detach(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs = slices.DeleteFunc(c.subs, func(o *subscription) bool { return o == s })
	c.assign(false)
}

// assign divides the lanes among the subscriptions. A lane that moves is served by its new
// owner once the old one has finished. The caller holds c.mu.
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

// leave removes the cursors of a consumer that could not be registered from their lanes.
func (c *consumer) leave() {
	for _, cur := range c.cursors {
		l := cur.lane
		l.mu.Lock()
		l.cursors = slices.DeleteFunc(l.cursors, func(o *cursor) bool { return o == cur })
		l.mu.Unlock()
	}
}

// readBytes is about how many bytes of a log are read back at once.
const readBytes = 256 << 10

// never is later than every wake, in Unix nanoseconds.
const never = int64(1<<63 - 1)

// cursor is the position of a group in a lane, with its posted messages and wakes there.
type cursor struct {
	c    *consumer
	lane *lane
	// place is the beginning of the positions of its messages. It is empty if they have none.
	place string
	// next is the offset of the next message to consume, guarded by lane.mu.
	next uint64
	// signal holds a token when there may be something to do.
	signal chan struct{}

	// inbox holds posted messages. posted counts them and the one that is being handled.
	inbox  chan flow.Message
	posted atomic.Int64

	wakes *mill.Wakes

	// run serves the lane. It is guarded by c.mu.
	run *run

	// The fields below are used by the goroutine of run only.
	started bool
	// backlog is the offset after the last message that was in the log at start.
	backlog uint64
	held    *flow.Message
	page    []store.Entry
	turn    int
}

// join makes the lane keep its messages for c. The caller holds lane.mu.
func (c *cursor) join() {
	l := c.lane
	l.cursors = append(l.cursors, c)
	for _, m := range l.kept {
		l.topic.kept.Add(-m.bytes)
	}
	l.kept = nil
}

// notify signals that there may be something to do.
func (c *cursor) notify() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// kind is the origin of a piece of work.
type kind int

const (
	fromLog kind = iota
	fromPost
	fromWake
)

// work is one message to handle.
type work struct {
	kind  kind
	entry store.Entry // fromLog
	wake  mill.Wake   // fromWake
	// message is nil if the log has only metadata. It must not be modified.
	message *flow.Message
}

// take returns the next piece of work, and false if there is none. Logs, posted messages and
// wakes take turns, so that none starves the others.
func (c *cursor) take() (w work, ok bool, err error) {
	c.turn++
	if c.turn%2 == 0 {
		if w, ok, err = c.takeLog(); ok || err != nil {
			return w, ok, err
		}
	}
	if w, ok = c.takePost(); ok {
		return w, true, nil
	}
	if w, ok = c.takeWake(); ok {
		return w, true, nil
	}
	if c.turn%2 == 0 {
		return work{}, false, nil
	}
	return c.takeLog()
}

func (c *cursor) takePost() (work, bool) {
	if c.held != nil {
		return work{kind: fromPost, message: c.held}, true
	}
	select {
	case m := <-c.inbox:
		c.held = &m
		return work{kind: fromPost, message: c.held}, true
	default:
		return work{}, false
	}
}

func (c *cursor) takeLog() (work, bool, error) {
	for {
		e, limit, ok := c.inTail()
		if ok || limit == 0 {
			return work{kind: fromLog, entry: e, message: e.Record.Message}, ok, nil
		}
		e, ok, err := c.readBack(limit)
		if ok || err != nil {
			return work{kind: fromLog, entry: e}, ok, err
		}
	}
}

// inTail returns the next message from the tail in memory. If the message is only in the store,
// limit is the offset at which the tail begins. If there is no message, limit is 0.
func (c *cursor) inTail() (e store.Entry, limit uint64, ok bool) {
	l := c.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	c.next = max(c.next, l.low)
	ready := l.ready()
	if c.next >= ready {
		return store.Entry{}, 0, false
	}
	from := l.tailFrom()
	if c.next < from {
		return store.Entry{}, min(from, ready), false
	}
	return l.tail[c.next-from], 0, true
}

// readBack reads the next message from the store. If there is none below limit, which happens
// only in a damaged store, it continues at limit.
func (c *cursor) readBack(limit uint64) (store.Entry, bool, error) {
	for len(c.page) > 0 && c.page[0].Offset < c.next {
		c.page = c.page[1:]
	}
	if len(c.page) == 0 {
		var err error
		c.page, err = c.c.t.db.ReadLog(c.lane.topic.name, c.lane.index, c.next, limit, readBytes)
		if err != nil {
			return store.Entry{}, false, err
		}
	}
	if len(c.page) == 0 {
		c.lane.mu.Lock()
		c.next = limit
		c.lane.mu.Unlock()
		return store.Entry{}, false, nil
	}
	return c.page[0], true, nil
}

// idle reports whether c has nothing to do. A message in flight does not count as consumed.
func (c *cursor) idle(now time.Time) bool {
	if !c.lane.mu.TryLock() {
		return false
	}
	behind := c.next < c.lane.head
	c.lane.mu.Unlock()
	if behind || c.posted.Load() > 0 {
		return false
	}
	if c.c.asleep {
		return true
	}
	_, due, _ := c.wakes.Next(now)
	return !due && !c.wakes.Waking()
}
