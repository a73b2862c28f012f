package fetch

import (
	"container/heap"
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// limits are the limits of a queue.
type limits struct {
	maxPerHost  int // requests of one host at once
	rate        rate.Limit
	burst       int
	maxInFlight int // requests at once in all
	maxWaiting  int // requests that wait
}

// job is a request that waits or is being fetched.
type job struct {
	req   flow.Request
	trace string
	// busyError is the result, without a fetch, if the host asked for a pause that is longer than the
	// request may wait.
	busyError *pipeline.FetchError
	host      *host
	standing  standing // of the host when the fetch began
	// firstByte bounds the wait for the answer; 0: only the time of the fetch does.
	firstByte time.Duration
}

// jobKey names a request. Numbers of checks come again where what was asked for was undone,
// so that the nonce is needed too: index waits for the answer to its last request only.
type jobKey struct {
	page, incarnation string
	check             uint64
	nonce             string
}

func (j *job) key() jobKey {
	return jobKey{j.req.Page, j.req.Incarnation, j.req.Check, j.req.Nonce}
}

// queue holds the waiting requests, by host. A host is in at most one of these: the list idle of its standing, if
// none of its requests is running; the list busy, if one is; notYetDue, if its time has not come. A host without
// requests and without a pause is removed.
type queue struct {
	limits
	// now is called with mu held, so that times never decrease unless the clock was set back.
	now     func() time.Time
	changed chan struct{} // there may be something to take

	mu         sync.Mutex
	latestTime time.Time // that was heard of
	hosts      map[string]*host
	queued     map[string]*job // by page; a later request replaces an earlier one
	active     map[jobKey]bool
	ready      [standings]readyHosts
	notYetDue  hostHeap
	records    hostRecords
}

// readyHosts are the hosts of one standing whose time has come.
type readyHosts struct {
	idle, busy list.List // of *host
	active     int       // requests that are being fetched
}

type host struct {
	name        string
	jobs        list.List // of *job, oldest first
	running     int
	limiter     *rate.Limiter
	pausedUntil time.Time // when the host may be asked again, as it wished

	readyList    *list.List // where it is ready
	readyElement *list.Element
	dueAt        time.Time // when its time comes, where it stands in notYetDue
	heapIndex    int       // in notYetDue, or -1
}

func newQueue(l limits, now func() time.Time) *queue {
	return &queue{
		limits: l, now: now, changed: make(chan struct{}, 1),
		hosts: make(map[string]*host), records: make(hostRecords), queued: make(map[string]*job), active: make(map[jobKey]bool),
	}
}

// add queues j. It replaces a waiting request for the same page, unless that was made later: requests come
// through their topic and from within the process. A request that is being fetched already is ignored. It
// returns false if there is no room: a host may have at most as many waiting requests as there is room left
// for others.
func (q *queue) add(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.readClock()
	if q.active[j.key()] {
		return true
	}
	if old := q.queued[j.req.Page]; old != nil {
		if j.req.NotAfter.Before(old.req.NotAfter) { // their numbers do not tell: a process that was killed leaves some to be given again
			return true
		}
		old.req, old.trace = j.req, j.trace
		return true
	}
	name, free := pageurl.Host(j.req.Page), q.maxWaiting-len(q.queued)
	h := q.hosts[name]
	if free == 0 || h != nil && h.jobs.Len() >= free {
		return false
	}
	if h == nil {
		h = q.addHost(name)
	}
	j.host = h
	q.queued[j.req.Page] = j
	h.jobs.PushBack(j)
	q.placeHost(h, now)
	q.signal()
	return true
}

// addHost adds a host. q.mu is held.
func (q *queue) addHost(name string) *host {
	h := &host{name: name, limiter: rate.NewLimiter(q.rate, q.burst), heapIndex: -1}
	q.hosts[name] = h
	return h
}

// reserve takes the next turn of a host for a request that does not wait in the queue. The request may
// begin after wait. If that is more than most, ok is false and no turn is taken.
func (q *queue) reserve(name string, most time.Duration) (wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.readClock()
	h := q.hosts[name]
	if h == nil {
		h = q.addHost(name)
	}
	turn := h.limiter.ReserveN(now, 1)
	wait = max(turn.DelayFrom(now), h.pausedUntil.Sub(now))
	if ok = wait <= most; !ok {
		turn.CancelAt(now)
	}
	q.placeHost(h, now)
	q.signal()
	return wait, ok
}

// takeReady returns the requests that may be fetched now. If again is true, the next one may be fetched in
// after, unless changed signals earlier.
func (q *queue) takeReady() (jobs []*job, after time.Duration, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.readClock()
	for len(q.notYetDue) > 0 && !q.notYetDue[0].dueAt.After(now) {
		q.placeHost(q.notYetDue[0], now)
	}
	for {
		h := q.nextReady()
		if h == nil {
			break
		}
		if j := q.popJob(h, now); j != nil {
			j.standing, j.firstByte = q.records.standing(h.name), q.records.firstByte(h.name)
			q.active[j.key()] = true
			q.ready[j.standing].active++
			h.running++
			jobs = append(jobs, j)
		}
		q.placeHost(h, now)
	}
	if len(q.notYetDue) == 0 {
		return jobs, 0, false
	}
	return jobs, max(q.notYetDue[0].dueAt.Sub(now), 0), true
}

// nextReady returns the host of the next request that may be fetched, or nil. Hosts without a running request come
// first, and hosts that answer before others. q.mu is held.
func (q *queue) nextReady() *host {
	for i := range q.ready {
		r := &q.ready[i]
		if front := r.idle.Front(); front != nil && len(q.active) < q.maxInFlight && r.active < standing(i).share(q.maxInFlight) {
			return front.Value.(*host)
		}
	}
	for i := range q.ready {
		r := &q.ready[i]
		if front := r.busy.Front(); front != nil && len(q.active) < q.maxInFlight/2 && r.active < standing(i).share(q.maxInFlight)/2 {
			return front.Value.(*host)
		}
	}
	return nil
}

// minClockSetBack is the least step back of the clock that is taken for a change of the clock.
const minClockSetBack = time.Second

// readClock reads the clock. If it was set back, the pauses of hosts are moved back too: otherwise they
// would last longer than the hosts asked for. So are the ends of waiting requests: otherwise those
// would seem to be made later than the next ones for their pages. q.mu is held.
func (q *queue) readClock() time.Time {
	now := q.now()
	back := q.latestTime.Sub(now)
	if back > minClockSetBack {
		for _, h := range q.hosts {
			h.pausedUntil, h.dueAt = h.pausedUntil.Add(-back), h.dueAt.Add(-back)
			h.limiter.SetLimitAt(now, q.rate) // which counts from now on
		}
		for _, j := range q.queued {
			if !j.req.NotAfter.IsZero() {
				j.req.NotAfter = j.req.NotAfter.Add(-back)
			}
		}
	}
	if back > minClockSetBack || back < 0 {
		q.latestTime = now
	}
	return now
}

// popJob removes the next job of h and returns it, or nil if it is too late for it.
func (q *queue) popJob(h *host, now time.Time) *job {
	j := h.jobs.Remove(h.jobs.Front()).(*job)
	delete(q.queued, j.req.Page)
	switch {
	case q.active[j.key()], isTooLate(j, now):
		return nil
	case now.Before(h.pausedUntil):
		j.busyError = &pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: h.pausedUntil.Sub(now), Reason: "the host asked to be left alone"}
	default:
		h.limiter.AllowN(now, 1)
	}
	return j
}

// finish ends j. pause is how long its host asked not to be contacted; answer is how it answered.
func (q *queue) finish(j *job, pause time.Duration, answer answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.readClock()
	delete(q.active, j.key())
	q.ready[j.standing].active--
	j.host.running--
	q.records.note(j.host.name, answer, q.maxWaiting)
	if until := now.Add(pause); pause > 0 && until.After(j.host.pausedUntil) {
		j.host.pausedUntil = until
	}
	q.placeHost(j.host, now)
	q.signal()
}

// placeHost puts h into the list that it belongs to now.
func (q *queue) placeHost(h *host, now time.Time) {
	if h.readyList != nil {
		h.readyList.Remove(h.readyElement)
		h.readyList, h.readyElement = nil, nil
	}
	if h.heapIndex >= 0 {
		heap.Remove(&q.notYetDue, h.heapIndex)
	}
	at := h.nextDue(now, q.burst)
	switch {
	case h.jobs.Len() == 0 && h.running > 0, h.running >= q.maxPerHost:
		return // finish places it again
	case at.After(now):
		h.dueAt = at
		heap.Push(&q.notYetDue, h)
		return
	case h.jobs.Len() == 0:
		delete(q.hosts, h.name)
		return
	case h.running == 0:
		h.readyList = &q.ready[q.records.standing(h.name)].idle
	default:
		h.readyList = &q.ready[q.records.standing(h.name)].busy
	}
	h.readyElement = h.readyList.PushBack(h)
}

// nextDue returns when the next job of h may be taken, or, without one, when h may be removed.
func (h *host) nextDue(now time.Time, burst int) time.Time {
	front := h.jobs.Front()
	if front != nil {
		if j := front.Value.(*job); isTooLate(j, now) || (now.Before(h.pausedUntil) && isTooLate(j, h.pausedUntil)) {
			return now
		}
	}
	need := 1.0
	if front == nil {
		need = float64(burst)
	}
	at := now
	if missing := need - h.limiter.TokensAt(now); missing > 0 {
		at = now.Add(time.Duration(missing/float64(h.limiter.Limit())*float64(time.Second)) + time.Microsecond)
	}
	if h.pausedUntil.After(at) {
		at = h.pausedUntil
	}
	return at
}

// isTooLate reports whether a fetch of j would begin too late at t.
func isTooLate(j *job, t time.Time) bool { return !j.req.NotAfter.IsZero() && t.After(j.req.NotAfter) }

// isIdle reports whether no request waits or is being fetched.
func (q *queue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued)+len(q.active) == 0
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// hostHeap is a heap of hosts by the time when they are due.
type hostHeap []*host

func (h hostHeap) Len() int           { return len(h) }
func (h hostHeap) Less(i, j int) bool { return h[i].dueAt.Before(h[j].dueAt) }
func (h hostHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].heapIndex, h[j].heapIndex = i, j }
func (h *hostHeap) Push(x any)        { v := x.(*host); v.heapIndex = len(*h); *h = append(*h, v) }
func (h *hostHeap) Pop() any {
	old := *h
	v := old[len(old)-1]
	old[len(old)-1] = nil
	*h, v.heapIndex = old[:len(old)-1], -1
	return v
}
