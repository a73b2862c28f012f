package index

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/internal/stored"
)

// runState is what one process knows of its pages and does not store. Except commanded and requests that
// begin, it changes after commits only. One commit may cover several messages of a page.
type runState struct {
	limit int
	// requests are the unanswered requests of this process, by page and nonce.
	requests stored.Leases[string, *request]

	mu        sync.Mutex
	counts    map[string]int // accepted checks by page, where there is a limit
	expected  map[string]bool
	waiting   map[string]bool // expected pages that Finished waits for
	commanded map[string]bool // pages with a command in this run, if there is a limit
	// reports are the reports of links on their way, by ID, from one page of this process to another, if
	// there is a limit.
	reports map[string][2]string
	late    map[string]time.Time // when a page was asked for too late, by Config.Steady, for lateShown
}

// request is an unanswered request for a page.
type request struct {
	interval time.Duration // of the page
	since    time.Time     // when the page was first requested without an answer, by Config.Steady
}

func newRun(limit int) *runState {
	return &runState{
		limit: limit, counts: make(map[string]int),
		expected: make(map[string]bool), waiting: make(map[string]bool),
		commanded: make(map[string]bool), late: make(map[string]time.Time),
	}
}

// noteCommand notes that a command for page was handled.
func (r *runState) noteCommand(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 {
		r.commanded[page] = true
	}
}

// tooEarly reports whether it is too early to check page: a limited run checks a page only after
// the first command for it, which says what is wanted of it now.
func (r *runState) tooEarly(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit > 0 && !r.commanded[page]
}

// budget is how many more checks of page may be accepted; nil means any number.
func (r *runState) budget(page string) *int {
	if r.limit <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.limit - r.counts[page]
	return &left
}

// checkAtOnce reports whether page must be checked now, regardless of its schedule: a limited run
// does not wait for its first check.
func (r *runState) checkAtOnce(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit > 0 && r.counts[page] == 0
}

// noteLate notes that page was requested too late, at now by Config.Steady.
func (r *runState) noteLate(page string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[page] = now
}

// requestSent notes that the request with nonce for page was committed, at now by Config.Steady.
func (r *runState) requestSent(page, nonce string, sent *request, now time.Time) {
	sent.since = now
	if open, ok := r.requests.Committed(page); ok {
		sent.since = open.Value.since
	}
	r.requests.Commit(page, nonce)
}

// requestLost reports whether the outstanding request of p, if any, was not made by this process in this
// epoch.
func (s *Stage) requestLost(p *Page, epoch uint64) bool {
	if p.Open == nil {
		return false
	}
	_, ok := s.run.requests.Find(p.URL, p.Open.Nonce, epoch)
	return !ok
}

// checkDone notes that a check of page is complete and counted.
func (r *runState) checkDone(page string) {
	r.requests.End(page)
	if r.limit <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts[page]++; r.counts[page] >= r.limit {
		delete(r.waiting, page)
	}
}

// noteIncarnation notes that an incarnation of page began or ended.
func (r *runState) noteIncarnation(page string, begins bool) {
	r.requests.End(page)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !begins:
		delete(r.waiting, page)
		delete(r.late, page)
	case r.expected[page] && r.counts[page] < r.limit:
		r.waiting[page] = true
	}
}

// reportSent notes that page sends the report id of its links to root. It may add pages to those that
// Finished waits for.
func (r *runState) reportSent(id, page, root string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reports == nil {
		r.reports = map[string][2]string{}
	}
	r.reports[id] = [2]string{page, root}
}

// reportHandled notes that the report id was handled.
func (r *runState) reportHandled(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reports, id)
}

// stopWaiting notes that Finished need not wait for page, and reports whether it did.
func (r *runState) stopWaiting(page string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited := r.waiting[page]
	delete(r.waiting, page)
	return waited
}

// Expect adds a page, by its canonical URL, to those that Finished waits for. Without Config.Checks it does
// nothing.
func (s *Stage) Expect(page string) {
	r := s.run
	if r.limit <= 0 {
		return // Finished waits for nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[page] = true
	if r.counts[page] < r.limit {
		r.waiting[page] = true
	}
}

// Finished reports whether every expected page had Config.Checks complete checks in this run,
// ended, is owned by another process, or is on a host that asked to be left alone for longer
// than a run should wait. Without Config.Checks it is false.
func (s *Stage) Finished() bool {
	r := s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.waiting, func(page string, _ bool) bool { return !s.cfg.Owned(page) })
	maps.DeleteFunc(r.reports, func(_ string, between [2]string) bool { return !s.cfg.Owned(between[0]) || !s.cfg.Owned(between[1]) })
	return r.limit > 0 && len(r.waiting) == 0 && len(r.reports) == 0
}

// overdueAfter is the least time for which a check must be outstanding to be overdue.
const overdueAfter = 5 * time.Minute

// Overdue returns, sorted, the pages whose check has been outstanding for more than two
// intervals and more than overdueAfter, by Config.Steady, however often it was requested again.
// A page that may not be checked in this run, or whose host asked to be left alone, is not
// overdue. Pages that another process owns now are left out.
func (s *Stage) Overdue() []string {
	r, now := s.run, s.cfg.Steady()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pruneLate(now)
	r.requests.Keep(s.cfg.Owned)
	var pages []string
	r.requests.Each(func(page string, l stored.Lease[string, *request]) {
		if now.Sub(l.Value.since) > max(2*l.Value.interval, overdueAfter) {
			pages = append(pages, page)
		}
	})
	slices.Sort(pages)
	return pages
}

const (
	// lateAfter is the least delay for which a check counts as late.
	lateAfter = 5 * time.Second
	// lateShown is how long a page that was checked late is counted by Late.
	lateShown = time.Minute
)

// lateDelay is how long after the previous check a check is late.
func lateDelay(interval time.Duration) time.Duration {
	return max(2*interval, interval+lateAfter)
}

// Late counts the pages whose check is late, or was in the last minute: it was requested, or is
// still unanswered, more than one interval and more than five seconds after it was due. After a
// process is killed, these are the pages that the others have not caught up with.
func (s *Stage) Late() int {
	r, now := s.run, s.cfg.Steady()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pruneLate(now)
	n := len(r.late)
	r.requests.Each(func(page string, l stored.Lease[string, *request]) {
		if _, counted := r.late[page]; !counted && s.cfg.Owned(page) && now.Sub(l.Value.since) > lateDelay(l.Value.interval) {
			n++
		}
	})
	return n
}

// pruneLate removes pages that no longer count as late at now, by Config.Steady.
func (r *runState) pruneLate(now time.Time) {
	maps.DeleteFunc(r.late, func(_ string, at time.Time) bool { return now.Sub(at) > lateShown })
}

// stopFetching notes that page is not fetched any more.
func (r *runState) stopFetching(page string) {
	r.requests.End(page)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, page)
}
