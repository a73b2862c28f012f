package index

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/schedule"
)

const (
	// askFor is how long after it was asked for a fetch may begin.
	askFor = 2 * time.Minute
	// slack is how much later than it may an outcome is waited for: queues and clocks.
	slack = 30 * time.Second
	// heldWake is when a page that may not be checked in this run is looked at again. Its
	// wake comes at the start of the next run anyway.
	heldWake = time.Hour
	// maxRetryAfter bounds how long a host may ask us to stay away.
	maxRetryAfter = 24 * time.Hour
	// maxInterval keeps schedules within what time.Duration can hold.
	maxInterval = 366 * 24 * time.Hour
)

// next is when to ask for the next check.
func (a *application) next() time.Time {
	p, interval := &a.p, a.interval()
	if interval < p.Paced {
		// Somebody more impatient came.
		p.Due, p.Paced = schedule.Second(p.URL, p.Asked, interval, a.gap(interval)), interval
	}
	at := p.Due
	switch {
	case p.Soon || a.AtOnce && !a.spent:
		at = a.Now
	case !p.Delayed.IsZero():
		at = p.Delayed
	case a.Rules.Every == nil:
		if t, overdue := schedule.Overdue(p.URL, latest(at, p.NotBefore), a.Now, interval); overdue {
			p.Delayed, at = t, t
		}
	}
	return latest(at, p.NotBefore)
}

// interval is what the most impatient subscription asks for.
func (a *application) interval() time.Duration {
	if a.Rules.Every != nil {
		return min(max(*a.Rules.Every, 0), maxInterval)
	}
	every := time.Duration(pipeline.DefaultInterval)
	if len(a.p.Intervals) > 0 {
		every = time.Duration(a.p.Intervals[0].Every)
	}
	return min(max(every, a.Rules.MinInterval), maxInterval)
}

// gap is the least time between two checks. An interval that the user forces is kept
// exactly.
func (a *application) gap(interval time.Duration) time.Duration {
	if a.Rules.Every != nil {
		return interval
	}
	return min(a.Rules.MinInterval, interval)
}

// reschedule sets when the page is due again, after a check that is complete.
func (a *application) reschedule(retryAfter time.Duration) {
	p, interval := &a.p, a.interval()
	switch {
	case a.Rules.Every != nil:
		// A forced interval leaves no phase behind: all pages would have the same.
		p.Due, p.Phased = schedule.Next(p.Due, p.Asked, a.Now, interval, 0), false
	case !p.Phased:
		p.Due, p.Phased = schedule.Second(p.URL, p.Asked, interval, a.gap(interval)), true
	default:
		p.Due = schedule.Next(p.Due, p.Asked, a.Now, interval, a.gap(interval))
	}
	p.Paced, p.Wish, p.NotBefore = interval, max(min(retryAfter, maxRetryAfter), 0), time.Time{}
	if p.Wish > 0 {
		p.NotBefore = a.Now.Add(p.Wish)
	}
}

// settle asks for a check if one is due, and sets the wake.
func (a *application) settle() {
	p := &a.p
	switch {
	case !a.exists():
		return
	case !p.Fetched():
		a.rest()
		return
	case p.Open != nil:
		at := p.Open.Deadline
		if a.Lost {
			at = a.Now // in the place of the start's wake, which gives up
		}
		a.emit(wakeAt{at, true})
		return
	case a.held():
		a.emit(wakeAt{a.Now.Add(heldWake), true})
		return
	}
	if at := a.next(); at.After(a.Now) {
		a.emit(wakeAt{at, false})
		return
	}
	a.ask()
}

// held reports whether no more requests are made in this run.
func (a *application) held() bool {
	if a.Budget == nil {
		return false
	}
	left := *a.Budget
	if a.spent {
		left--
	}
	return left <= 0
}

// ask makes a request with a new number.
func (a *application) ask() {
	p := &a.p
	p.Check++
	r := flow.Request{Page: p.URL, Incarnation: p.Incarnation, Check: p.Check, Nonce: a.Nonce, Failures: p.Failures, NotAfter: a.Now.Add(askFor)}
	if !p.Bare && p.standsFor(p.Check) {
		r.ETag, r.LastModified, r.BodyHash = p.ETag, p.LastModified, p.BodyHash
	}
	for _, d := range p.Documents {
		rd := flow.RequestDocument{ID: d.ID, View: d.View}
		if !p.Bare {
			rd.TextHash = d.TextHash
		}
		r.Documents = append(r.Documents, rd)
	}
	r.KeepBody = p.wantsBody(a.Now)
	p.Open = &Open{Deadline: a.Now.Add(a.patience()), Parts: len(r.Documents), Bare: p.Bare, Rebase: p.Rebase, KeepBody: r.KeepBody, Nonce: r.Nonce}
	since := p.Asked
	p.Asked, p.Delayed, p.Soon, p.Bare, p.Rebase = a.Now, time.Time{}, false, false, false
	a.emit(ask{r, a.interval(), since, p.Open.Rebase})
	a.emit(wakeAt{p.Open.Deadline, true})
}

// giveUp forgets a request that is lost, so that another is made. Only a wake may: one at
// the start comes behind the log, while a command that is handled again after a crash may
// have the outcome right behind it.
func (a *application) giveUp() {
	o := a.p.Open
	if o == nil || (!a.Lost && a.Now.Before(o.Deadline)) {
		return
	}
	a.p.Open, a.p.Soon, a.p.Bare, a.p.Rebase = nil, true, o.Bare, o.Rebase
}

// rest makes a page that nobody wants to be fetched wait for nothing.
func (a *application) rest() {
	p := &a.p
	p.Open, p.Soon, p.Bare, p.Rebase, p.Delayed = nil, false, false, false, time.Time{}
	a.emit(wakeAt{})
}

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
	p.NotBefore = earliest(p.NotBefore, a.Now.Add(p.Wish))
	if p.Open != nil {
		p.Open.Deadline = earliest(p.Open.Deadline, a.Now.Add(a.patience()))
	}
}

// patience is for how long the outcome of a request is waited for at most.
func (a *application) patience() time.Duration { return askFor + a.Rules.FetchTimeout + slack }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
