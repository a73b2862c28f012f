package local

import (
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/internal/store"
)

// maxTailBytes is how many bytes at the end of a lane's log are also kept in memory, so that
// consumers that keep up do not read from the store. At least one message is kept.
const maxTailBytes = 256 << 10

// A lane's consumed messages are trimmed in chunks: each is one range tombstone.
const (
	trimMessages = 256
	trimBytes    = 4 << 20
)

// laneLog is one of the parallel logs of a topic.
type laneLog struct {
	topic *topic
	index int
	// lockOrder is the rank of the lane when several are locked.
	lockOrder int

	mu sync.Mutex
	// low is the offset of the oldest message kept, head that of the next message to append.
	low, head uint64
	// tail are the last messages before head.
	tail      []store.Entry
	tailBytes int
	// unsynced are the offsets, in order, of messages whose publisher still waits for the disk.
	// Consumers do not get them, nor later messages, before they are durable, because handling
	// a message can have effects outside.
	unsynced []uint64
	// consumedBytes is about how many bytes after low all groups have consumed.
	consumedBytes int
	cursors       []*cursor
	// roomFreed is closed when the lane has room again. It is nil while nobody waits.
	roomFreed chan struct{}
	// kept are the messages of a lane without groups, oldest first.
	kept []keptRange
}

// keptRange describes consecutive messages of a lane without groups.
type keptRange struct {
	end      uint64 // the offset after the last
	at       time.Time
	bytes    int64
	messages int
}

// slowestPosition returns the position of the slowest group, or low if there are no groups. The caller
// holds l.mu.
func (l *laneLog) slowestPosition() uint64 {
	if len(l.cursors) == 0 {
		return l.low
	}
	m := l.head
	for _, c := range l.cursors {
		m = min(m, c.next)
	}
	return m
}

// isFull reports whether the lane holds bound messages that a group has not consumed. The caller
// holds l.mu.
func (l *laneLog) isFull(bound int) bool {
	return len(l.cursors) > 0 && l.head-l.slowestPosition() >= uint64(bound)
}

// deliverableEnd returns the offset before which messages may be delivered. The caller holds l.mu.
func (l *laneLog) deliverableEnd() uint64 {
	if len(l.unsynced) > 0 {
		return l.unsynced[0]
	}
	return l.head
}

// markDurable records that the message at offset is durable.
func (l *laneLog) markDurable(offset uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.deliverableEnd()
	if i, ok := slices.BinarySearch(l.unsynced, offset); ok {
		l.unsynced = slices.Delete(l.unsynced, i, i+1)
	}
	if l.deliverableEnd() == before {
		return
	}
	for _, c := range l.cursors {
		c.notify()
	}
}

// roomChannel returns a channel that is closed when there may be room. The caller holds l.mu.
func (l *laneLog) roomChannel() <-chan struct{} {
	if l.roomFreed == nil {
		l.roomFreed = make(chan struct{})
	}
	return l.roomFreed
}

// appendRecord appends r at offset l.head and notifies the consumers. The caller holds l.mu.
func (l *laneLog) appendRecord(r store.Record) {
	if l.topic.declared.Ephemeral && len(l.cursors) == 0 {
		return // the message has no reader
	}
	l.tail = append(l.tail, store.Entry{Offset: l.head, Record: r})
	l.tailBytes += r.Memory()
	l.head++
	for !l.topic.volatile && l.tailBytes > maxTailBytes && len(l.tail) > 1 {
		l.dropOldest()
	}
	if len(l.cursors) == 0 {
		l.recordKept(r.Time, r.Size())
	}
	for _, c := range l.cursors {
		c.notify()
	}
}

// dropBefore removes messages before offset to from the tail.
func (l *laneLog) dropBefore(to uint64) {
	for len(l.tail) > 0 && l.tail[0].Offset < to {
		l.dropOldest()
	}
}

// dropOldest removes the oldest message of the tail.
func (l *laneLog) dropOldest() {
	l.tailBytes -= l.tail[0].Record.Memory()
	l.tail[0] = store.Entry{}
	l.tail = l.tail[1:]
}

// tailStart returns the offset of the first message of the tail.
func (l *laneLog) tailStart() uint64 { return l.head - uint64(len(l.tail)) }

// recordKept records the last message of a lane without groups.
func (l *laneLog) recordKept(at time.Time, size int) {
	if n := len(l.kept); n == 0 || l.kept[n-1].messages == 64 {
		l.kept = append(l.kept, keptRange{})
	}
	m := &l.kept[len(l.kept)-1]
	m.end, m.at = l.head, at
	m.bytes += int64(size)
	m.messages++
	l.topic.keptBytes.Add(int64(size))
}

// advance moves the position of c past the message that Peek returned, and trims what all groups have consumed.
func (c *cursor) advance() {
	t, l := c.consumer.transport, c.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.slowestPosition()
	c.next = c.peeked.Offset + 1
	m := l.slowestPosition()
	if m == before {
		return
	}
	l.consumedBytes += c.peeked.Record.Size()
	if l.topic.volatile || m >= l.low+trimMessages || l.consumedBytes >= trimBytes {
		t.trimLog(l, m)
	}
	l.dropBefore(m)
	if l.roomFreed != nil && !l.isFull(t.cfg.Bound) {
		close(l.roomFreed)
		l.roomFreed = nil
	}
}

// applyRetention trims the topics of out that have no groups to MaxAge and MaxBytes.
func (t *Transport) applyRetention(out []output) {
	var last *topic
	for _, o := range out {
		if o.lane.topic != last {
			last = o.lane.topic
			t.applyTopicRetention(last)
		}
	}
}

func (t *Transport) applyTopicRetention(tp *topic) {
	for tp.keptBytes.Load() > 0 {
		l, first := oldestKept(tp)
		if l == nil || tp.keptBytes.Load() <= t.cfg.MaxBytes && !first.at.Before(t.cfg.Now().Add(-t.cfg.MaxAge)) {
			return
		}
		t.trimOldestKept(l, first)
	}
}

// oldestKept returns the oldest kept range of a topic and its lane, which is nil if no message is kept.
func oldestKept(tp *topic) (found *laneLog, first keptRange) {
	for _, l := range tp.lanes {
		l.mu.Lock()
		if len(l.kept) > 0 && (found == nil || l.kept[0].at.Before(first.at)) {
			found, first = l, l.kept[0]
		}
		l.mu.Unlock()
	}
	return found, first
}

// trimOldestKept removes the oldest kept range of a lane without groups, if it is still the same.
func (t *Transport) trimOldestKept(l *laneLog, first keptRange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 || l.kept[0] != first {
		return
	}
	l.topic.keptBytes.Add(-first.bytes)
	l.kept = l.kept[1:]
	t.trimLog(l, first.end)
	l.dropBefore(first.end)
}

// trimLog removes messages before offset to from the log. The caller holds l.mu.
func (t *Transport) trimLog(l *laneLog, to uint64) {
	if !l.topic.volatile {
		if err := t.trimStored(l, to); err != nil {
			t.log.Error("trimming a log failed", "topic", l.topic.name, "lane", l.index, "error", err)
			return
		}
	}
	l.low, l.consumedBytes = to, 0
}

// trimStored removes messages before offset to from the store. The caller holds l.mu.
func (t *Transport) trimStored(l *laneLog, to uint64) error {
	return t.db.Write(false, func(b *store.Batch) error {
		b.Trim(l.topic.name, l.index, l.low, to)
		return nil
	})
}
