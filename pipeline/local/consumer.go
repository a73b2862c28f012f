package local

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
)

// consumer is a group as the consumer of a topic. It has a cursor in each lane. The lanes are
// divided among the group's subscriptions.
type consumer struct {
	transport *Transport
	group     string
	topic     *topic
	cursors   []*cursor
	// inactive says that this Transport does not consume for the group.
	inactive bool
	// timed says that the group keeps its wakes in its state; see flow.Topic.
	timed bool

	mu sync.Mutex // held while the lanes are divided
}

func newConsumer(t *Transport, group string, tp *topic) *consumer {
	c := &consumer{
		transport: t, group: group, topic: tp,
		timed: slices.Contains(tp.declared.Timed, group),
	}
	for _, l := range tp.lanes {
		cur := &cursor{consumer: c, lane: l, signal: make(chan struct{}, 1), wakes: engine.NewWakes()}
		for _, behind := range t.chain.Behind(engine.Consumer{Group: group, Topic: tp.name}) {
			cur.links = append(cur.links, &engine.Link{Consumer: behind, Wakes: engine.NewWakes()})
		}
		if !tp.volatile || t.volatile {
			cur.positionPrefix = fmt.Sprintf("%s/%s/%d/", t.db.ID(), tp.name, l.index)
		}
		c.cursors = append(c.cursors, cur)
	}
	return c
}

// wakeGroup is the group in whose state the wakes of c are.
func (c *consumer) wakeGroup() string {
	if c.timed {
		return c.group
	}
	return engine.WakeGroup(c.group, c.topic.name)
}

// newRunner returns the runner of a lane.
func (c *cursor) newRunner() *engine.Runner[output] {
	t := c.consumer.transport
	w := t.wiring.Load()
	return &engine.Runner[output]{
		Group: c.consumer.group, Topic: c.consumer.topic.name, Lane: c,
		Reader: reader{t, c.lane.index}, Outputs: outputs{t}, Wakes: c.wakes, Inbox: &c.inbox, Links: c.links,
		Now: t.clock.CheckedNow, Bare: w.Bare, Unhandled: w.Unhandled, Rejected: w.Rejected, MaxPause: t.cfg.MaxPause, Closing: t.ctx.Done(), Signal: c.signal,
	}
}

// Broken reports that the log cannot be read.
func (c *cursor) Broken(err error) { c.reportFailure("reading a lane failed", err) }

// reportFailure reports a failure of the store.
func (c *cursor) reportFailure(text string, err error) {
	c.consumer.transport.log.Error(text, "group", c.consumer.group, "topic", c.lane.topic.name, "lane", c.lane.index, "error", err)
	c.consumer.transport.reportBroken(err)
}

// readChunkBytes is about how many bytes of a log are read back at once.
const readChunkBytes = 256 << 10

// cursor is the position of a group in a lane, with its posted messages and wakes there.
type cursor struct {
	consumer *consumer
	lane     *laneLog
	// positionPrefix is the beginning of the positions of its messages. It is empty if they have none.
	positionPrefix string
	// next is the offset of the next message to consume, guarded by lane.mu.
	next uint64
	// signal holds a token when there may be something to do.
	signal chan struct{}

	inbox engine.Inbox
	wakes *engine.Wakes
	// links are those of the chain behind the consumer.
	links []*engine.Link
	// pendingCommits are the commits that wait for the disk.
	pendingCommits commitQueue

	// seat has the runner of the lane. It is guarded by consumer.mu.
	seat engine.Seat[output]

	// startWakesPending says that the wakes of the start are still to be delivered.
	startWakesPending atomic.Bool

	// The fields below are used by the goroutine of the runner only.
	// backlog is the offset after the last message that was in the log at start.
	backlogEnd uint64
	readAhead  []store.Entry
	// peeked is the message that Peek returned.
	peeked store.Entry
}

var _ engine.Lane[output] = (*cursor)(nil)

// Begin makes the wakes that are also delivered at start be delivered, if the group's first
// subscription starts to serve the lane. End waits until all commits are durable.
func (c *cursor) Begin(chan struct{}) (end func()) {
	if c.startWakesPending.Swap(false) {
		c.lane.mu.Lock()
		c.backlogEnd = c.lane.head
		c.lane.mu.Unlock()
		for _, wakes := range c.deliveredWakes() {
			wakes.Start()
		}
	}
	return c.pendingCommits.awaitEmpty
}

// allWakes lists the wakes of c and of its links.
func (c *cursor) allWakes() []*engine.Wakes {
	all := []*engine.Wakes{c.wakes}
	for _, l := range c.links {
		all = append(all, l.Wakes)
	}
	return all
}

// deliveredWakes lists the wakes of those that are not asleep.
func (c *cursor) deliveredWakes() (awake []*engine.Wakes) {
	asleep := c.consumer.transport.cfg.Asleep
	if !slices.Contains(asleep, c.consumer.group) {
		awake = append(awake, c.wakes)
	}
	for _, l := range c.links {
		if !slices.Contains(asleep, l.Group) {
			awake = append(awake, l.Wakes)
		}
	}
	return awake
}

// joinLane makes the lane keep its messages for c, which begins at the oldest one.
func (c *cursor) joinLane() {
	l := c.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	c.next = l.low
	l.cursors = append(l.cursors, c)
	for _, m := range l.kept {
		l.topic.keptBytes.Add(-m.bytes)
	}
	l.kept = nil
}

// notify signals that there may be something to do.
func (c *cursor) notify() { engine.Notify(c.signal) }

// Peek returns the next message of the log.
func (c *cursor) Peek() (engine.Work, bool, error) {
	for {
		e, limit, ok := c.peekTail()
		if !ok && limit == 0 {
			return engine.Work{}, false, nil
		}
		if !ok {
			var err error
			if e, ok, err = c.peekStored(limit); err != nil {
				return engine.Work{}, false, err
			}
		}
		if ok {
			c.peeked = e
			return c.workOf(e), true, nil
		}
	}
}

// workOf returns the message of e.
func (c *cursor) workOf(e store.Entry) engine.Work {
	w := engine.Work{Kind: engine.FromLog, Offset: int64(e.Offset), Message: e.Record.Message, ID: e.Record.ID, Meta: e.Record.Meta, Body: e.Record.Payload}
	if c.positionPrefix != "" {
		w.Position = c.positionPrefix + strconv.FormatUint(e.Offset, 10)
	}
	return w
}

// Late reports whether messages that were in the log at start are still unhandled. Wakes wait
// for them, because the result of work that seems lost may be among them.
func (c *cursor) Late(group string) bool {
	if slices.Contains(c.consumer.transport.cfg.Asleep, group) {
		return true
	}
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	return c.next < c.backlogEnd
}

// peekTail returns the next message from the tail in memory. If the message is only in the store,
// limit is the offset at which the tail begins. If there is no message, limit is 0.
func (c *cursor) peekTail() (e store.Entry, limit uint64, ok bool) {
	l := c.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	c.next = max(c.next, l.low)
	ready := l.deliverableEnd()
	if c.next >= ready {
		return store.Entry{}, 0, false
	}
	from := l.tailStart()
	if c.next < from {
		return store.Entry{}, min(from, ready), false
	}
	return l.tail[c.next-from], 0, true
}

// peekStored reads the next message from the store. If there is none below limit, which happens
// only in a damaged store, it continues at limit.
func (c *cursor) peekStored(limit uint64) (store.Entry, bool, error) {
	for len(c.readAhead) > 0 && c.readAhead[0].Offset < c.next {
		c.readAhead = c.readAhead[1:]
	}
	if len(c.readAhead) == 0 {
		var err error
		c.readAhead, err = c.consumer.transport.db.ReadLog(c.lane.topic.name, c.lane.index, c.next, limit, readChunkBytes)
		if err != nil {
			return store.Entry{}, false, err
		}
	}
	if len(c.readAhead) == 0 {
		c.lane.mu.Lock()
		c.next = limit
		c.lane.mu.Unlock()
		return store.Entry{}, false, nil
	}
	return c.readAhead[0], true, nil
}

// isIdle reports whether c has nothing to do. A message in flight does not count as consumed.
func (c *cursor) isIdle(now time.Time) bool {
	if !c.lane.mu.TryLock() {
		return false
	}
	behind := c.next < c.lane.head
	c.lane.mu.Unlock()
	if behind || !c.inbox.Empty() || c.pendingCommits.oldestDone() != nil {
		return false
	}
	return !slices.ContainsFunc(c.deliveredWakes(), func(wakes *engine.Wakes) bool { return wakes.Pending(now) })
}
