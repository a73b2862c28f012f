package index

import (
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/schedule"
)

const (
	// askFor is how long after its request a fetch may begin.
	askFor = 2 * time.Minute
	// slack is how much longer an outcome is waited for than a fetch may take, since messages
	// queue and clocks differ.
	slack = 30 * time.Second
	// heldWake is when a page wakes again that may not be checked in this run. The next run
	// wakes it when it starts anyway.
	heldWake = time.Hour
	// step is the unit to which the time of a check is rounded up, so that all checks of a step are
	// requested together. Single checks cost more: a processor that falls asleep after each has to be
	// woken for the next.
	step = 50 * time.Millisecond
	// maxRetryAfter bounds how long a host may keep us away with Retry-After.
	maxRetryAfter = 24 * time.Hour
	// maxInterval keeps schedules within what time.Duration can hold.
	maxInterval = 366 * 24 * time.Hour
)

// nextCheck is when to request the next check.
func (a *applier) nextCheck() time.Time {
	p, interval := a.p, a.interval()
	if interval < p.Paced {
		// A subscription with a shorter interval was added.
		p.Due, p.Paced = schedule.Second(p.URL, p.Asked, interval, a.minGap(interval)), interval
	}
	a.setCron(interval)
	at := p.NextDue()
	if p.GiveUpAt.After(p.Asked) {
		at = earliest(at, p.GiveUpAt) // that takes a check, for it may answer
	}
	switch {
	case p.Soon || a.AtOnce && !a.checkCompleted:
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

// interval is the shortest interval of the subscriptions, or maxInterval if they have cron lines only. It is longer
// while the page is dormant or its host says nothing.
func (a *applier) interval() time.Duration { return a.p.slowed(a.wantedInterval()) }

// wantedInterval is interval while the page answers.
func (a *applier) wantedInterval() time.Duration {
	if a.Rules.Every != nil {
		return min(max(*a.Rules.Every, 0), maxInterval)
	}
	if len(a.p.Intervals) == 0 {
		return min(max(time.Duration(pipeline.DefaultInterval), a.Rules.MinInterval), maxInterval)
	}
	every := maxInterval
	for _, i := range a.p.Intervals {
		switch {
		case i.Cron != "":
		case i.Max > 0:
			every = min(every, min(max(a.p.Pace, time.Duration(i.Every)), time.Duration(i.Max)))
		default:
			every = min(every, time.Duration(i.Every))
		}
	}
	return min(max(every, a.Rules.MinInterval), maxInterval)
}

// hasInterval reports whether a subscription, or who keeps the page, asks for checks at an interval, and not
// at the times of a cron line.
func (p *Page) hasInterval() bool {
	return len(p.Intervals) == 0 || slices.ContainsFunc(p.Intervals, func(i intervalCount) bool { return i.Cron == "" })
}

// NextDue is when the page is due by its interval or by a cron line, whichever is first.
func (p *Page) NextDue() time.Time {
	if !p.Cron.IsZero() && (!p.hasInterval() || p.Cron.Before(p.Due)) {
		return p.Cron
	}
	return p.Due
}

// unknownCron is after how long a page is checked whose cron lines have no next time, because this
// machine does not know their time zones.
const unknownCron = 24 * time.Hour

// setCron sets Page.Cron. A page that was never checked has none: it is checked at once.
func (a *applier) setCron(interval time.Duration) {
	p := a.p
	if a.Rules.Every != nil || p.Asked.IsZero() {
		p.Cron = time.Time{}
		return
	}
	if !p.Cron.IsZero() {
		return
	}
	for _, i := range p.Intervals {
		if i.Cron == "" {
			continue
		}
		at := i.Cron.Next(p.Asked)
		if gap := i.Cron.Next(at).Sub(at); gap > 0 {
			at = i.Cron.Next(p.Asked.Add(p.slowed(gap) - gap))
		}
		if at.IsZero() {
			at = p.Asked.Add(unknownCron)
		}
		if p.Cron.IsZero() || at.Before(p.Cron) {
			p.Cron = at
		}
	}
	if !p.Cron.IsZero() {
		p.Cron = latest(p.Cron.Add(schedule.Offset(p.URL, schedule.Jitter)), p.Asked.Add(a.minGap(interval)))
	}
}

// adaptPace sets Page.Pace after a check that succeeded.
func (a *applier) adaptPace(changed bool) {
	p := a.p
	var least, most time.Duration
	for _, i := range p.Intervals {
		if i.Max == 0 {
			continue
		}
		if least == 0 || time.Duration(i.Every) < least {
			least = time.Duration(i.Every)
		}
		most = max(most, time.Duration(i.Max))
	}
	if most == 0 {
		p.Pace = 0
		return
	}
	p.Pace = schedule.Adapt(p.Pace, changed, least, most)
}

// minGap is the least time between two checks. An interval that the user forces (Rules.Every) is
// kept exactly.
func (a *applier) minGap(interval time.Duration) time.Duration {
	if a.Rules.Every != nil {
		return interval
	}
	return min(a.Rules.MinInterval, interval)
}

// reschedule sets when the page is due again, after a complete check.
func (a *applier) reschedule(retryAfter time.Duration) {
	p, interval := a.p, a.interval()
	switch {
	case a.Rules.Every != nil:
		// A forced interval sets no phase: all pages would have the same one.
		p.Due, p.Phased = schedule.Next(p.Due, p.Asked, a.Now, interval, 0), false
	case !p.hasInterval():
		p.Due, p.Phased = time.Time{}, false
	case !p.Phased:
		p.Due, p.Phased = schedule.Second(p.URL, p.Asked, interval, a.minGap(interval)), true
	default:
		p.Due = schedule.Next(p.Due, p.Asked, a.Now, interval, a.minGap(interval))
	}
	p.Paced, p.Wish, p.NotBefore = interval, max(min(retryAfter, maxRetryAfter), 0), time.Time{}
	if p.Wish > 0 {
		p.NotBefore = a.Now.Add(p.Wish)
	}
}

// scheduleNext requests a check if one is due, and sets the wake.
func (a *applier) scheduleNext() {
	p := a.p
	switch {
	case !a.exists():
		if !p.PauseEnd.IsZero() || !p.Wake.Time.IsZero() {
			a.setWake(time.Time{}, false)
		}
		return
	case !p.Fetched():
		a.clearSchedule()
		return
	case p.Open != nil:
		at := p.Open.Deadline
		if a.Lost {
			at = a.Now // replaces the wake at the start, which would give the request up
		}
		a.setWake(at, true)
		return
	case a.budgetSpent():
		a.setWake(a.Now.Add(heldWake), true)
		return
	}
	if at := a.nextCheck(); at.After(a.Now) {
		a.setWake(roundToStep(at, a.interval()), false)
		return
	}
	a.requestCheck()
}

// roundToStep rounds the time of a check up to a step, or to a twentieth of its interval if that is less.
func roundToStep(at time.Time, interval time.Duration) time.Time {
	by := max(min(step, interval/20), 1)
	return at.Add(by - 1).Truncate(by)
}

// budgetSpent reports whether this run makes no more requests for the page.
func (a *applier) budgetSpent() bool {
	if a.Budget == nil {
		return false
	}
	left := *a.Budget
	if a.checkCompleted {
		left--
	}
	return left <= 0
}

// requestCheck makes a request with a new number.
func (a *applier) requestCheck() {
	p := a.p
	p.Check++
	r := flow.Request{Page: p.URL, Incarnation: p.Incarnation, Check: p.Check, Nonce: a.Nonce, Failures: p.Failures, NotAfter: a.Now.Add(askFor)}
	if !p.Bare && p.bodyStandsFor(p.Check) {
		r.ETag, r.LastModified, r.BodyHash, r.Access = p.ETag, p.LastModified, p.BodyHash, p.Access
	}
	for _, d := range p.Documents {
		if p.isResting(&d) {
			continue
		}
		rd := flow.RequestDocument{ID: d.ID, View: d.View}
		if !p.Bare {
			rd.TextHash = d.TextHash
		}
		r.Documents = append(r.Documents, rd)
	}
	r.KeepBody, r.Links, r.Robots = p.wantsBody(a.Now), p.storesLinks(), p.onlyFollowed()
	p.Open = &Open{Deadline: a.Now.Add(a.answerTimeout()), Parts: len(r.Documents), Bare: p.Bare, Rebase: p.Rebase, KeepBody: r.KeepBody, Nonce: r.Nonce}
	since, expected := p.Asked, a.interval()
	if !p.Cron.IsZero() {
		expected = min(expected, p.Cron.Sub(since))
	}
	p.Cron = time.Time{}
	p.Asked, p.Delayed, p.Soon, p.Bare, p.Rebase = a.Now, time.Time{}, false, false, false
	a.emit(requestCheck{r, expected, since, p.Open.Rebase})
	a.setWake(p.Open.Deadline, true)
}

// giveUpLost forgets a lost request, so that another is made. Only wakes do that: the wake at the
// start comes after all messages of the log. A command that is handled again after a crash may
// be followed by the outcome of the request.
func (a *applier) giveUpLost() {
	o := a.p.Open
	if o == nil || (!a.Lost && a.Now.Before(o.Deadline)) {
		return
	}
	a.p.Open, a.p.Soon, a.p.Bare, a.p.Rebase = nil, true, o.Bare, o.Rebase
}

// clearSchedule clears the schedule of a page that is not fetched. If it is fetched later, its first check is
// not late.
func (a *applier) clearSchedule() {
	p := a.p
	p.Asked = time.Time{}
	p.Open, p.Soon, p.Bare, p.Rebase, p.Delayed = nil, false, false, false, time.Time{}
	a.setWake(time.Time{}, false)
}

// setWake sets the page's next wake to at, or to the end of a pause if that is earlier. The zero time
// means that the page itself needs no wake.
func (a *applier) setWake(at time.Time, atStart bool) {
	if end := a.p.PauseEnd; !end.IsZero() && (at.IsZero() || end.Before(at)) {
		at = end
	}
	a.p.Wake = wakeAt{at, atStart}
	a.emit(a.p.Wake)
}

// clampTimes corrects times that lie further in the future than the rules ever set them. They do if
// the clock was set back: without this a page would not be checked for as long as the clock was
// ahead.
func (a *applier) clampTimes() {
	p := a.p
	if !a.exists() {
		return
	}
	if back := p.Asked.Sub(a.Now); back > 0 {
		// The clock went back by at least this much. Move the times that were set by it.
		p.Asked, p.Cron = a.Now, time.Time{}
		for _, t := range []*time.Time{&p.Due, &p.Delayed, &p.NotBefore} {
			if !t.IsZero() {
				*t = t.Add(-back)
			}
		}
	}
	// A check that was requested before the clock went wrong, and was completed while it was
	// wrong, also leaves such times.
	interval := max(a.interval(), p.Paced)
	gap := a.minGap(interval)
	if p.Due.Sub(a.Now) > interval+gap {
		p.Due = schedule.Second(p.URL, a.Now, interval, gap)
	}
	if p.Delayed.Sub(a.Now) > schedule.CatchUp {
		p.Delayed = time.Time{}
	}
	p.NotBefore = earliest(p.NotBefore, a.Now.Add(p.Wish))
	if p.Open != nil {
		p.Open.Deadline = earliest(p.Open.Deadline, a.Now.Add(a.answerTimeout()))
	}
}

// answerTimeout is how long the outcome of a request is waited for.
func (a *applier) answerTimeout() time.Duration { return askFor + a.Rules.FetchTimeout + slack }

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
