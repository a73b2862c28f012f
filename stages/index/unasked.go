package index

import (
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Fetched reports whether anybody asks for checks of p. One that is only pushed is never
// fetched: it cannot be overdue, and it does not expire.
func (p *Page) Fetched() bool {
	return p.Incarnation != "" && (len(p.Intervals) > 0 ||
		slices.ContainsFunc(p.Keep, func(origin string) bool { return !slices.Contains(p.Unasked, origin) }))
}

// keepEvery notes how often origin, which keeps the page, asks for checks of it.
func (p *Page) keepEvery(origin string, every pipeline.Duration) {
	p.Unasked = slices.DeleteFunc(p.Unasked, func(o string) bool { return o == origin })
	if every == pipeline.Never {
		p.Unasked = append(p.Unasked, origin)
		slices.Sort(p.Unasked)
	}
}

// rest makes a page that nobody wants to be fetched wait for nothing.
func (a *application) rest() {
	p := &a.p
	p.Open, p.Soon, p.Bare, p.Rebase, p.Delayed = nil, false, false, false, time.Time{}
	a.emit(WakeAt{})
}

// rest notes that page is not fetched.
func (r *run) rest(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over(page)
	delete(r.waiting, page)
}
