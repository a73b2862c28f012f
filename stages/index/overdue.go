package index

import (
	"maps"
	"slices"
	"time"
)

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
