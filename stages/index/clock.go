package index

import (
	"cmp"
	"time"

	"github.com/vokter/vokter/pipeline/schedule"
)

// clamp takes back times that lie further ahead than the rules ever set them, as they do
// once the clock was set back: nothing waits for a time that is long past in truth.
func (a *application) clamp() {
	p := &a.p
	if !a.exists() {
		return
	}
	if back := p.Asked.Sub(a.Now); back > 0 {
		// The clock went back by that at least. What was set by it goes along.
		p.Asked = a.Now
		for _, t := range []*time.Time{&p.Due, &p.Delayed, &p.NotBefore} {
			if !t.IsZero() {
				*t = t.Add(-back)
			}
		}
	}
	// A check that was asked for before the clock was wrong, and was complete meanwhile, left
	// times that nothing else tells.
	interval := max(a.interval(), p.Paced)
	gap := a.gap(interval)
	if p.Due.Sub(a.Now) > interval+gap {
		p.Due = schedule.Second(p.URL, a.Now, interval, gap)
	}
	if p.Delayed.Sub(a.Now) > schedule.CatchUp {
		p.Delayed = time.Time{}
	}
	p.NotBefore = earliest(p.NotBefore, a.Now.Add(cmp.Or(p.Wish, maxRetryAfter)))
	if p.Open != nil {
		p.Open.Deadline = earliest(p.Open.Deadline, a.Now.Add(a.patience()))
	}
}

// patience is for how long the outcome of a request is waited for at most.
func (a *application) patience() time.Duration { return AskFor + a.Rules.FetchTimeout + slack }

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
