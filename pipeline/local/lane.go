package local

import (
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline/store"
)

// tailBytes is how many bytes at the end of a lane's log are also kept in memory, so that
// consumers that keep up do not read from the store. At least one message is kept.
const tailBytes = 256 << 10

// A lane's consumed messages are trimmed in chunks: each is one range tombstone.
const (
	trimMessages = 256
	trimBytes    = 4 << 20
)

// laneLog is one of the parallel logs of a topic.
type laneLog struct {
	topic *topic
	index int
	// order is the rank of the lane when several are locked.
	order int

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
	// consumed is about how many bytes after low all groups have consumed.
	consumed int
	cursors  []*cursor
	// room is closed when the lane has room again. It is nil while nobody waits.
	room chan struct{}
	// kept are the messages of a lane without groups, oldest first.
	kept []mark
}

// mark describes consecutive messages of a lane without groups.
type mark struct {
	to      uint64 // the offset after the last
	at      time.Time
	bytes   int64
	entries int
}

// min returns the position of the slowest group, or low if there are no groups. The caller
// holds l.mu.
func (l *laneLog) min() uint64 {
	if len(l.cursors) == 0 {
		return l.low
	}
	m := l.head
	for _, c := range l.cursors {
		m = min(m, c.next)
	}
	return m
}

// full reports whether the lane holds bound messages that a group has not consumed. The caller
// holds l.mu.
func (l *laneLog) full(bound int) bool {
	return len(l.cursors) > 0 && l.head-l.min() >= uint64(bound)
}

// ready returns the offset before which messages may be delivered. The caller holds l.mu.
func (l *laneLog) ready() uint64 {
	if len(l.unsynced) > 0 {
		return l.unsynced[0]
	}
	return l.head
}

// synced records that the message at offset is durable.
func (l *laneLog) synced(offset uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.ready()
	if i, ok := slices.BinarySearch(l.unsynced, offset); ok {
		l.unsynced = slices.Delete(l.unsynced, i, i+1)
	}
	if l.ready() == before {
		return
	}
	for _, c := range l.cursors {
		c.notify()
	}
}

// waitRoom returns a channel that is closed when there may be room. The caller holds l.mu.
func (l *laneLog) waitRoom() <-chan struct{} {
	if l.room == nil {
		l.room = make(chan struct{})
	}
	return l.room
}

// push appends r at offset l.head and notifies the consumers. The caller holds l.mu.
func (l *laneLog) push(r store.Record) {
	if l.topic.declared.Ephemeral && len(l.cursors) == 0 {
		return // the message has no reader
	}
	l.tail = append(l.tail, store.Entry{Offset: l.head, Record: r})
	l.tailBytes += r.Memory()
	l.head++
	for !l.topic.volatile && l.tailBytes > tailBytes && len(l.tail) > 1 {
		l.drop()
	}
	if len(l.cursors) == 0 {
		l.keep(r.Time, r.Size())
	}
	for _, c := range l.cursors {
		c.notify()
	}
}

// dropTo removes messages before offset to from the tail.
func (l *laneLog) dropTo(to uint64) {
	for len(l.tail) > 0 && l.tail[0].Offset < to {
		l.drop()
	}
}

// drop removes the oldest message of the tail.
func (l *laneLog) drop() {
	l.tailBytes -= l.tail[0].Record.Memory()
	l.tail[0] = store.Entry{}
	l.tail = l.tail[1:]
}

// tailFrom returns the offset of the first message of the tail.
func (l *laneLog) tailFrom() uint64 { return l.head - uint64(len(l.tail)) }

// keep records the last message of a lane without groups.
func (l *laneLog) keep(at time.Time, size int) {
	if n := len(l.kept); n == 0 || l.kept[n-1].entries == 64 {
		l.kept = append(l.kept, mark{})
	}
	m := &l.kept[len(l.kept)-1]
	m.to, m.at = l.head, at
	m.bytes += int64(size)
	m.entries++
	l.topic.kept.Add(int64(size))
}

// advance moves the position of c past the message that Peek returned, and trims what all groups have consumed.
func (c *cursor) advance() {
	t, l := c.c.t, c.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.min()
	c.next = c.at.Offset + 1
	m := l.min()
	if m == before {
		return
	}
	l.consumed += c.at.Record.Size()
	if l.topic.volatile || m >= l.low+trimMessages || l.consumed >= trimBytes {
		t.trim(l, m)
	}
	l.dropTo(m)
	if l.room != nil && !l.full(t.cfg.Bound) {
		close(l.room)
		l.room = nil
	}
}

// retain trims the topics of out that have no groups to MaxAge and MaxBytes.
func (t *Transport) retain(out []output) {
	var last *topic
	for _, o := range out {
		if o.lane.topic != last {
			last = o.lane.topic
			t.retainTopic(last)
		}
	}
}

func (t *Transport) retainTopic(tp *topic) {
	for tp.kept.Load() > 0 {
		l, first := oldest(tp)
		if l == nil || tp.kept.Load() <= t.cfg.MaxBytes && !first.at.Before(t.cfg.Now().Add(-t.cfg.MaxAge)) {
			return
		}
		t.trimKept(l, first)
	}
}

// oldest returns the oldest mark of a topic and its lane, which is nil if no message is kept.
func oldest(tp *topic) (found *laneLog, first mark) {
	for _, l := range tp.lanes {
		l.mu.Lock()
		if len(l.kept) > 0 && (found == nil || l.kept[0].at.Before(first.at)) {
			found, first = l, l.kept[0]
		}
		l.mu.Unlock()
	}
	return found, first
}

// trimKept removes the oldest mark of a lane without groups, if it is still the same.
func (t *Transport) trimKept(l *laneLog, first mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 || l.kept[0] != first {
		return
	}
	l.topic.kept.Add(-first.bytes)
	l.kept = l.kept[1:]
	t.trim(l, first.to)
	l.dropTo(first.to)
}

// trim removes messages before offset to from the log. The caller holds l.mu.
func (t *Transport) trim(l *laneLog, to uint64) {
	if !l.topic.volatile {
		if err := t.trimStored(l, to); err != nil {
			t.log.Error("trimming a log failed", "topic", l.topic.name, "lane", l.index, "error", err)
			return
		}
	}
	l.low, l.consumed = to, 0
}

// trimStored removes messages before offset to from the store. The caller holds l.mu.
func (t *Transport) trimStored(l *laneLog, to uint64) error {
	return t.db.Write(false, func(b *store.Batch) error {
		b.Trim(l.topic.name, l.index, l.low, to)
		return nil
	})
}
