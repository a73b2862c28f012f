package kafka

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"
)

// wake is the time at which key is woken; the zero time deletes the wake.
type wake struct {
	key     string
	at      time.Time
	atStart bool
}

// wakes are the wakes of a consumer in a lane.
type wakes struct {
	mu  sync.Mutex
	all map[string]wake
	due wakeHeap // may hold entries that have been replaced
	// starting are the keys whose wakes come once regardless of the time, in order.
	starting map[string]bool
	order    []string
}

func newWakes() *wakes {
	return &wakes{all: make(map[string]wake), starting: make(map[string]bool)}
}

// restore adds a wake that was set before the lane was taken.
func (q *wakes) restore(w wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set(w)
	if w.atStart {
		q.start(w.key)
	}
}

// start makes the wake of key come once regardless of the time. q.mu is held.
func (q *wakes) start(key string) {
	if !q.starting[key] {
		q.starting[key] = true
		q.order = append(q.order, key)
	}
}

// wakeAll makes every wake come once regardless of the time.
func (q *wakes) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.all {
		q.start(key)
	}
	q.sort()
}

// sort puts the keys of starting into the order of their wakes' times. q.mu is held.
func (q *wakes) sort() {
	slices.SortFunc(q.order, func(a, b string) int {
		return cmp.Or(q.all[a].at.Compare(q.all[b].at), strings.Compare(a, b))
	})
}

// restored is called when all wakes have been restored.
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

// set replaces the wake of w.key. q.mu is held.
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

// next returns the wake that is due at now. If there is none, until is the time of the next one;
// zero if there is no wake.
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

// waking reports whether wakes are pending that come regardless of the time.
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

// now returns the wall-clock time and records that it was seen.
func (t *Transport) now() time.Time { return t.clock.See(t.cfg.Now()) }

// checkClock makes every wake come once if the clock was set back.
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

// wakeAll makes every wake of n come once regardless of the time.
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
