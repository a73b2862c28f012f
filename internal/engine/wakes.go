package engine

import (
	"cmp"
	"container/heap"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// WakeGroup names the group in whose state a transport keeps the wakes that group asked for on topic: for
// each key the value flow.WakeName. Groups of flow.Topic.Timed keep them in their own state.
func WakeGroup(group, topic string) string { return group + "\x00" + topic }

// CutWakeGroup is the inverse of WakeGroup. Ok is false for the names of other groups.
func CutWakeGroup(name string) (group, topic string, ok bool) {
	group, topic, ok = strings.Cut(name, "\x00")
	return group, topic, ok && group != ""
}

// Wake is the time at which a key is woken. A zero At means that it is not.
type Wake struct {
	Key string
	At  time.Time
	// AtStart says that the key is also woken once when its group starts.
	AtStart bool
}

// Value returns the value that keeps w; nil if w removes the wake.
func (w Wake) Value() []byte {
	if w.At.IsZero() {
		return nil
	}
	return flow.AppendWake(nil, w.At, w.AtStart)
}

// Wakes are the wakes of a group in one lane of a topic, at most one for each key. They are in
// memory: the transport stores them as well, and sets them again when it opens. It is safe for
// concurrent use.
type Wakes struct {
	mu     sync.Mutex
	byKey  map[string]*entry
	byTime wakeHeap
	// forced are the keys that are woken once regardless of the time, in order. A key whose
	// entry is not forced any more was set since.
	forced     []string
	forcedLeft int // how many entries are forced
}

// entry is a Wake with its index in Wakes.byTime.
type entry struct {
	Wake
	heapIndex int
	forced    bool
}

// NewWakes returns Wakes without any wake.
func NewWakes() *Wakes { return &Wakes{byKey: make(map[string]*entry)} }

// Set replaces the wake of w.Key, or removes it if w.At is zero.
func (q *Wakes) Set(w Wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.byKey[w.Key]
	if e != nil && e.forced {
		e.forced = false
		q.forcedLeft--
	}
	switch {
	case w.At.IsZero():
		if e != nil {
			delete(q.byKey, w.Key)
			heap.Remove(&q.byTime, e.heapIndex)
		}
	case e == nil:
		e = &entry{Wake: w}
		q.byKey[w.Key] = e
		heap.Push(&q.byTime, e)
	default:
		e.Wake = w
		q.byTime[e.heapIndex].at = w.At.UnixNano()
		heap.Fix(&q.byTime, e.heapIndex)
	}
}

// Restore sets the wakes that values hold, by key; see flow.WakeName.
func (q *Wakes) Restore(values iter.Seq2[string, flow.Value]) error {
	for key, v := range values {
		at, atStart, _, err := flow.CutWake(v.Bytes)
		if v.Err != nil || err != nil {
			return cmp.Or(v.Err, err)
		}
		q.Set(Wake{Key: key, At: at, AtStart: atStart})
	}
	return nil
}

// Get returns the wake of key; its At is zero if there is none.
func (q *Wakes) Get(key string) Wake {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.byKey[key]; e != nil {
		return e.Wake
	}
	return Wake{}
}

// Start makes each key whose wake is AtStart be woken once regardless of the time.
func (q *Wakes) Start() { q.force(func(w Wake) bool { return w.AtStart }) }

// WakeAll makes each key be woken once regardless of the time.
func (q *Wakes) WakeAll() { q.force(func(Wake) bool { return true }) }

func (q *Wakes) force(which func(Wake) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forced, q.forcedLeft = nil, 0
	for key, e := range q.byKey {
		if e.forced = e.forced || which(e.Wake); e.forced {
			q.forced = append(q.forced, key)
			q.forcedLeft++
		}
	}
	slices.SortFunc(q.forced, func(a, b string) int {
		return cmp.Or(q.byKey[a].At.Compare(q.byKey[b].At), strings.Compare(a, b))
	})
}

// Next returns the wake that is due at now, or regardless of the time. If there is none, until is
// the time of the next one; zero if there is no wake. The wake stays until it is set again.
func (q *Wakes) Next(now time.Time) (w Wake, ok bool, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.forced) > 0 {
		if e := q.byKey[q.forced[0]]; e != nil && e.forced {
			return e.Wake, true, time.Time{}
		}
		q.forced = q.forced[1:]
	}
	q.forced = nil
	if len(q.byTime) == 0 {
		return Wake{}, false, time.Time{}
	}
	first := q.byTime[0].Wake
	return first, !first.At.After(now), first.At
}

// Pending reports whether a key is to be woken now.
func (q *Wakes) Pending(now time.Time) bool {
	_, due, _ := q.Next(now)
	return due || q.Waking()
}

// Waking reports whether keys are still to be woken regardless of the time.
func (q *Wakes) Waking() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.forcedLeft > 0
}

// wakeHeap is a heap of entries, the earliest first. The times stand in it, so that comparing them reads no
// entries.
type wakeHeap []heapItem

type heapItem struct {
	at int64 // Wake.At in nanoseconds since 1970
	*entry
}

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h wakeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *wakeHeap) Push(x any) {
	e := x.(*entry)
	e.heapIndex = len(*h)
	*h = append(*h, heapItem{e.At.UnixNano(), e})
}

func (h *wakeHeap) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last].entry
	old[last] = heapItem{}
	*h = old[:last]
	return e
}

const (
	// SetBack is how far the clock must be set back for all wakes to fire once.
	SetBack = time.Minute
	// saveInterval is how often a commit stores the current time.
	saveInterval = 10 * time.Second
)

// Clock is the clock of a transport. It remembers the latest time, to notice when the wall clock is
// set back: wakes that were scheduled before would come too late. It has seen no time at first. It is
// safe for concurrent use.
type Clock struct {
	// Wall returns the time of the wall clock.
	Wall func() time.Time
	// WakeAll makes every wake be delivered once regardless of the time.
	WakeAll func()
	Log     *slog.Logger

	latest  atomic.Int64 // in Unix nanoseconds
	checkMu sync.Mutex
}

// Now returns the time of the wall clock and remembers it.
func (c *Clock) Now() time.Time {
	now := c.Wall()
	c.See(now)
	return now
}

// CheckedNow is Now, but first it looks whether the clock was set back.
func (c *Clock) CheckedNow() time.Time {
	c.Check()
	return c.Now()
}

// See remembers the time now.
func (c *Clock) See(now time.Time) {
	n := now.UnixNano()
	for {
		high := c.latest.Load()
		if n <= high || c.latest.CompareAndSwap(high, n) {
			return
		}
	}
}

// Behind reports whether now is more than SetBack before the latest time.
func (c *Clock) Behind(now time.Time) bool {
	return c.latest.Load()-now.UnixNano() > int64(SetBack)
}

// Save reports whether a commit has to store the time now, which is done at intervals and with the last
// commit. Saved is the stored time. While wakes come regardless of the time, which waking reports, only a later
// time is stored, so that a restart still notices that the clock was set back.
func (c *Clock) Save(saved time.Time, last bool, waking func() bool) (now time.Time, ok bool) {
	now = c.Now()
	d := now.Sub(saved)
	return now, (last || d.Abs() >= saveInterval) && !c.Behind(now) && (d >= 0 || !waking())
}

// Check calls WakeAll if the wall clock was set back, and then makes its time the latest one. It
// does nothing while another call of Check calls WakeAll.
func (c *Clock) Check() {
	now := c.Wall()
	if !c.Behind(now) || !c.checkMu.TryLock() {
		return
	}
	defer c.checkMu.Unlock()
	high := c.latest.Load()
	if !c.Behind(now) {
		return
	}
	c.Log.Warn("the clock was set back: all that was scheduled is looked at once", "from", time.Unix(0, high).UTC(), "to", now.UTC())
	c.WakeAll()
	c.latest.CompareAndSwap(high, now.UnixNano()) // after WakeAll: until then no commit may store now
}
