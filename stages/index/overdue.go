package index

import (
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
	var pages []string
	for page, o := range r.requests {
		if !s.cfg.Owned(page) {
			delete(r.requests, page)
			continue
		}
		if now.Sub(o.since) > max(2*o.interval, overdueAfter) {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages
}
