package index

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// run is what one process knows of its pages and forgets with its end. But for made and told
// it changes after commits only, of which one may stand for several messages of a page.
type run struct {
	limit int
	only  func(page string) bool

	mu       sync.Mutex
	requests map[string]outstanding // of this process, by page
	made     map[string]made        // the last request for each page, which may yet be undone
	counts   map[string]int         // accepted checks by page, where there is a limit
	expected map[string]bool
	waiting  map[string]bool      // expected pages that Finished waits for
	told     map[string]bool      // pages that a command came for, where there is a limit
	late     map[string]time.Time // when a page was asked for too late, by Config.Steady, for lateShown
}

// request names a request.
type request struct {
	incarnation string
	check       uint64
}

// made names a request by its nonce, and the epoch in which it was made.
type made struct {
	nonce string
	epoch uint64
}

// outstanding is a request that is not answered. Since is when its page was first asked
// for without an answer, by Config.Steady; interval how often it is to be checked.
type outstanding struct {
	request
	made
	since    time.Time
	interval time.Duration
}

func newRun(limit int, only func(string) bool) *run {
	return &run{
		limit: limit, only: only, requests: make(map[string]outstanding), made: make(map[string]made), counts: make(map[string]int),
		expected: make(map[string]bool), waiting: make(map[string]bool),
		told: make(map[string]bool), late: make(map[string]time.Time),
	}
}

// tell notes that a command came for page.
func (r *run) tell(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 {
		r.told[page] = true
	}
}

// early reports whether page is not to be checked yet: a limited run checks a page once it
// knows what is asked of it now.
func (r *run) early(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit > 0 && !r.told[page]
}

// budget is how many more checks of page may be accepted; nil means any number.
func (r *run) budget(page string) *int {
	if r.only != nil && !r.only(page) {
		return new(int)
	}
	if r.limit <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.limit - r.counts[page]
	return &left
}

// atOnce reports whether page is to be checked whatever its schedule says: a limited run
// does not wait for its first check.
func (r *run) atOnce(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit > 0 && r.counts[page] == 0
}

// ask notes a request that is made at now, by Config.Steady.
func (r *run) ask(a ask, now time.Time, epoch uint64) {
	q := a.Request
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.requests[q.Page]; ok && o.incarnation == q.Incarnation {
		now = o.since
	}
	r.requests[q.Page] = outstanding{request{q.Incarnation, q.Check}, made{q.Nonce, epoch}, now, a.Interval}
}

// delayed notes that page was asked for too late, at now by Config.Steady.
func (r *run) delayed(page string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[page] = now
}

// makes notes, before its commit, that a request with nonce is made for page.
func (r *run) makes(page, nonce string, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[page] = made{nonce, epoch}
}

// asked reports whether this process made the outstanding request of p in this epoch. One of
// an earlier epoch may have gone down with the process that it was for.
func (r *run) asked(p Page, epoch uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Open == nil {
		return false
	}
	// What was made last may have been undone, and what was committed stands then.
	this := made{p.Open.Nonce, epoch}
	return r.made[p.URL] == this || r.requests[p.URL].made == this
}

// over forgets the request for page that was committed last. One that was made since stands.
func (r *run) over(page string) {
	if r.made[page] == r.requests[page].made {
		delete(r.made, page)
	}
	delete(r.requests, page)
}

// done notes an accepted check of page, which is complete.
func (r *run) done(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over(page)
	if r.limit <= 0 {
		return
	}
	if r.counts[page]++; r.counts[page] >= r.limit {
		delete(r.waiting, page)
	}
}

// lives notes that a life of page began, or ended.
func (r *run) lives(page string, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !begins:
		r.over(page)
		delete(r.waiting, page)
		delete(r.late, page)
	case r.expected[page] && r.counts[page] < r.limit:
		r.waiting[page] = true
	}
}

// hold notes that page will not be checked soon, and reports whether it was waited for.
func (r *run) hold(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited := r.waiting[page]
	delete(r.waiting, page)
	return waited
}

// Expect adds a page, by its canonical URL, to those that Finished waits for.
func (s *Stage) Expect(page string) {
	r := s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[page] = true
	if r.counts[page] < r.limit {
		r.waiting[page] = true
	}
}

// Finished reports whether every expected page has had Config.Checks accepted checks in
// this run, has ended in it, belongs to a host that asked to be left alone for longer than a
// run should wait, or to another process. Without Config.Checks it is false.
func (s *Stage) Finished() bool {
	r := s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.waiting, func(page string, _ bool) bool { return !s.cfg.Owned(page) })
	return r.limit > 0 && len(r.waiting) == 0
}

// overdueAfter is for how long at least a check may be outstanding before it is overdue.
const overdueAfter = 5 * time.Minute

// Overdue returns the pages, in order, that this process first asked for more than two of
// their intervals and overdueAfter ago by Config.Steady without a check that is complete,
// however often it asked again. It looks at outstanding requests only: a page that may not
// be checked in this run, or whose host asked to be left alone, is not overdue. Requests for
// pages that another process has now are forgotten.
func (s *Stage) Overdue() []string {
	r, now := s.run, s.cfg.Steady()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(now)
	var pages []string
	for page, o := range r.requests {
		if !s.cfg.Owned(page) {
			delete(r.requests, page)
			delete(r.made, page)
			continue
		}
		if now.Sub(o.since) > max(2*o.interval, overdueAfter) {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages
}

const (
	// lateAfter is by how much at least a check must come too late to be late.
	lateAfter = 5 * time.Second
	// lateShown is for how long a page that was checked late counts as late.
	lateShown = time.Minute
)

// tooLate is after what time since the check before a check of a page is late.
func tooLate(interval time.Duration) time.Duration {
	return max(2*interval, interval+lateAfter)
}

// Late counts the pages that are checked too late, or were in the last minute: whose last
// check was asked for, or is not answered, more than an interval behind its time, and at
// least five seconds. They are what a process that was killed leaves to the others.
func (s *Stage) Late() int {
	r, now := s.run, s.cfg.Steady()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(now)
	n := len(r.late)
	for page, o := range r.requests {
		if _, counted := r.late[page]; !counted && s.cfg.Owned(page) && now.Sub(o.since) > tooLate(o.interval) {
			n++
		}
	}
	return n
}

// prune forgets the pages that are late no more at now, by Config.Steady.
func (r *run) prune(now time.Time) {
	maps.DeleteFunc(r.late, func(_ string, at time.Time) bool { return now.Sub(at) > lateShown })
}

// rest notes that page is not fetched.
func (r *run) rest(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over(page)
	delete(r.waiting, page)
}
