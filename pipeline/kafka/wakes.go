package kafka

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"
)

// wake is when key is to be woken; the zero time takes it back.
type wake struct {
	key     string
	at      time.Time
	atStart bool
}

// wakes are those of a consumer in a lane.
type wakes struct {
	mu  sync.Mutex
	all map[string]wake
	due wakeHeap // also holds entries that were replaced since
	// starting are the keys whose wakes come once, whatever the time is.
	starting map[string]bool
	order    []string
}

func newWakes() *wakes {
	return &wakes{all: make(map[string]wake), starting: make(map[string]bool)}
}

// restore adds a wake that was there when the lane was taken.
func (q *wakes) restore(w wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set(w)
	if w.atStart {
		q.start(w.key)
	}
}

// start makes the wake of key come once. q.mu is held.
func (q *wakes) start(key string) {
	if !q.starting[key] {
		q.starting[key] = true
		q.order = append(q.order, key)
	}
}

// wakeAll makes every wake come once.
func (q *wakes) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.all {
		q.start(key)
	}
	q.sort()
}

// sort makes wakes that come once come in the order of their times. q.mu is held.
func (q *wakes) sort() {
	slices.SortFunc(q.order, func(a, b string) int {
		return cmp.Or(q.all[a].at.Compare(q.all[b].at), strings.Compare(a, b))
	})
}

// restored says that all wakes that were there are known.
func (q *wakes) restored() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
}

// put replaces the wake of key.
func (q *wakes) put(key string, w wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.starting, key)
	w.key = key
	q.set(w)
}

// set is put with the lock held.
func (q *wakes) set(w wake) {
	if w.at.IsZero() {
		delete(q.all, w.key)
		return
	}
	q.all[w.key] = w
	heap.Push(&q.due, w)
	if len(q.due) > 2*len(q.all)+64 {
		q.due = q.due[:0]
		for _, w := range q.all {
			q.due = append(q.due, w)
		}
		heap.Init(&q.due)
	}
}

// next returns what is due at now; where nothing is, when the next one will be (zero: never).
func (q *wakes) next(now time.Time) (w wake, ok bool, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.order) > 0 {
		if key := q.order[0]; q.starting[key] {
			if w, ok := q.all[key]; ok {
				return w, true, time.Time{}
			}
			delete(q.starting, key)
		}
		q.order = q.order[1:]
	}
	for len(q.due) > 0 {
		first := q.due[0]
		if present, ok := q.all[first.key]; !ok || !present.at.Equal(first.at) {
			heap.Pop(&q.due)
			continue
		}
		return first, !first.at.After(now), first.at
	}
	return wake{}, false, time.Time{}
}

// waking reports whether wakes are to come whatever the time is.
func (q *wakes) waking() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.starting) > 0
}

// wakeHeap orders wakes by time.
type wakeHeap []wake

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h wakeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *wakeHeap) Push(x any)        { *h = append(*h, x.(wake)) }
func (h *wakeHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = wake{}
	*h = old[:len(old)-1]
	return w
}

// now is the time by the wall clock. That there was such a time is remembered.
func (t *Transport) now() time.Time { return t.clock.See(t.cfg.Now()) }

// checkClock wakes every key that has a wake once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	t.clock.Check(now, func(from time.Time) {
		t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", from.UTC(), "to", now.UTC())
		for lane := range t.owned {
			if n := t.lease(lane); n != nil {
				n.wakeAll()
			}
		}
	})
}

// wakeAll makes every wake of n come once.
func (n *lease) wakeAll() {
	n.queueMu.Lock()
	for _, q := range n.queues {
		q.wakeAll()
	}
	n.queueMu.Unlock()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, r := range n.runners {
		notify(r.signal)
	}
}
