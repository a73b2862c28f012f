package index

import (
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// busyChecks is how many checks in a row may find the host too busy before such checks
	// count as failed.
	busyChecks = 100
	// failingAfter is after how many failures in a row a failing event is published.
	failingAfter = 3
	// maxDormant and maxSilent bound the interval of a dormant page, and of one whose host says nothing, unless its
	// subscriptions ask for a longer one.
	maxDormant = 24 * time.Hour
	maxSilent  = time.Hour
)

// setExpire notes the Expire that origin, which keeps the page, wants for it; the zero value if it does not say.
func (p *Page) setExpire(origin string, e pipeline.Expire) {
	p.Expires = maps.Clone(p.Expires)
	if e.IsZero() {
		delete(p.Expires, origin)
		return
	}
	if p.Expires == nil {
		p.Expires = make(map[string]pipeline.Expire)
	}
	p.Expires[origin] = e
}

// expire returns the Expire of the page: that of the first of the origins that keep it and say it, or standard.
func (p *Page) expire(standard pipeline.Expire) pipeline.Expire {
	for _, origin := range p.Keep {
		if e, ok := p.Expires[origin]; ok {
			return e.Or(standard)
		}
	}
	return standard
}

// leastAfter is after how many failed checks in a row somebody may be told; 0 and less mean never.
func (p *Page) leastAfter(r rules) int {
	after := p.expire(r.Expire).After
	if p.LeastAfter > 0 && (after <= 0 || p.LeastAfter < after) {
		after = p.LeastAfter
	}
	return after
}

// tellsClients reports whether clients may have to be told of o. Then apply needs the page's subscriptions.
func (p *Page) tellsClients(o flow.Outcome, r rules) bool {
	least := p.leastAfter(r)
	switch {
	case p.Open == nil:
		return false
	case p.Dormant > 0:
		return true
	case least <= 0 || p.Failures+1 < least:
		return false
	}
	return o.Kind != flow.OutcomeUnchanged || o.Parts > 0 || p.Open.Bare
}

// slowed returns the time between two checks in place of every: longer for a dormant page, and for one whose host says
// nothing.
func (p *Page) slowed(every time.Duration) time.Duration {
	if !p.DormantSince.IsZero() {
		return doubled(every, p.DormantChecks+1, maxDormant)
	}
	return doubled(every, p.Silent, maxSilent)
}

// doubled returns d doubled n times, at most limit or d.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	limit = max(limit, d)
	for ; n > 0 && d > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// countCheck counts the complete check open, whose last outcome is o, as reached or failed. It
// reports whether the page expired.
func (a *applier) countCheck(o flow.Outcome, open *Open) bool {
	p := a.p
	switch {
	case open.Reached:
		a.noteAnswer(o, open)
		return false
	case o.Offline:
		return false
	case open.Class != pipeline.FailBusy:
		p.Busy = 0
	case p.Busy < busyChecks:
		p.Busy++
		return false
	}
	if p.Failures++; p.FailedSince.IsZero() {
		p.FailedSince = a.checkTime(o)
	}
	if p.Silent++; open.Class != pipeline.FailTimeout {
		p.Silent = 0
	}
	if !p.DormantSince.IsZero() {
		p.DormantChecks++
	}
	if a.giveUp(o, open) {
		return true
	}
	if p.Failures >= failingAfter && !p.Failing && !p.isDeadLink() {
		p.Failing = true
		if p.DormantSince.IsZero() {
			a.emitHealth(o, a.failureHealth(pipeline.HealthFailing, open))
		}
	}
	return false
}

// failureHealth returns the event about the failures up to those of the check open.
func (a *applier) failureHealth(event pipeline.HealthEvent, open *Open) pipeline.Health {
	return pipeline.Health{Event: event, Class: open.Class, Reason: open.Reason, Since: a.p.FailedSince, Count: a.p.Failures}
}

// giveUp tells the clients whose patience is over with the check open, which failed: of the timeout, after which the
// page is dormant for them, or of its end. It reports whether the page ended.
func (a *applier) giveUp(o flow.Outcome, open *Open) bool {
	p, at := a.p, a.checkTime(o)
	if least := p.leastAfter(a.Rules); p.Dormant == 0 && (least <= 0 || p.Failures < least) {
		return false // the subscriptions are not at hand
	}
	t := telling{a: a, first: p.Stamp + 1}
	page := p.expire(a.Rules.Expire)
	patient, waiting := 0, 0
	p.GiveUpAt = time.Time{}
	for _, s := range a.existing {
		e := s.Subscription.Expire.Or(page)
		told := !s.Dormant.IsZero()
		switch {
		case !told && (e.After < 0 || p.Failures < e.After):
			patient++
		case told && e.After < 0:
			waiting++
		case !told && e.Retry < 0:
			t.end(s, pipeline.StatusTimeout, at, open)
		case !told:
			waiting++
			p.Dormant++
			t.repeat(s, pipeline.StatusTimeout, at)
			p.noteGiveUp(at.Add(e.Retry))
		case e.Retry < 0 || !at.Before(s.Dormant.Add(e.Retry)):
			t.end(s, pipeline.StatusExpired, at, open)
		default:
			waiting++
			p.noteGiveUp(s.Dormant.Add(e.Retry))
		}
	}
	kept := len(p.Keep) > 0
	if kept && (page.After < 0 || p.Failures < page.After) {
		patient++
	}
	slept := p.DormantSince
	if p.DormantSince.IsZero() && patient == 0 {
		p.DormantSince = at
	}
	keeps := false
	if kept && patient == 0 {
		until := p.DormantSince.Add(page.Retry)
		if keeps = page.Retry >= 0 && at.Before(until); keeps {
			p.noteGiveUp(until)
		}
	}
	t.tell(o, open)
	switch {
	case patient+waiting == 0 && !keeps:
		said := a.failureHealth(pipeline.HealthExpired, open)
		said.Sinks = t.sinks()
		a.emitHealth(o, said)
		a.expirePage(at, open)
		return true
	case slept.IsZero() && patient == 0:
		said := a.failureHealth(pipeline.HealthDormant, open)
		said.Sinks = t.sinks()
		a.emitHealth(o, said)
		if !p.isDeadLink() {
			a.emit(pageDormant{p.Failures, open.Class, open.Reason})
		}
	}
	a.removeUnwatched()
	return false
}

// noteGiveUp notes that the page is given up at the time at, unless somebody does so earlier.
func (p *Page) noteGiveUp(at time.Time) {
	if p.GiveUpAt.IsZero() || at.Before(p.GiveUpAt) {
		p.GiveUpAt = at
	}
}

// noteAnswer notes that the page answered in the check open, whose last outcome is o, and tells the clients that waited
// for it.
func (a *applier) noteAnswer(o flow.Outcome, open *Open) {
	p := a.p
	if p.Failures+p.Busy+p.Dormant == 0 {
		return
	}
	t := telling{a: a, first: p.Stamp + 1, made: open.Made}
	answers := p.FailedSince.IsZero() // it has answered while clients paused, who count from their timeout
	for _, s := range a.existing {
		if !s.Dormant.IsZero() {
			if answers && (p.FailedSince.IsZero() || s.Dormant.Before(p.FailedSince)) {
				p.FailedSince = s.Dormant
			}
			t.repeat(s, pipeline.StatusRecovered, time.Time{})
		}
	}
	t.tell(o, open)
	if p.Failing || !p.DormantSince.IsZero() {
		a.emitHealth(o, pipeline.Health{Event: pipeline.HealthRecovered, Since: p.FailedSince, Count: p.Failures, Sinks: t.sinks()})
	}
	p.Failures, p.Busy, p.FailedSince, p.Failing, p.Silent = 0, 0, time.Time{}, false, 0
	p.Dormant, p.DormantSince, p.DormantChecks, p.GiveUpAt = 0, time.Time{}, 0, time.Time{}
}

// telling collects the records whose clients are told of one check.
type telling struct {
	a     *applier
	first uint64
	// made are the versions that the check made, by document.
	made map[string]uint64
	told []flow.Stamped
}

// repeat repeats the record s, whose client is told with that status. dormant is its Stamped.Dormant from now on.
func (t *telling) repeat(s flow.Stamped, status string, dormant time.Time) {
	s.Dormant, s.Tell = dormant, t.status(s, status)
	t.a.p.Stamp++
	s.Stamp = t.a.p.Stamp
	t.a.emit(stamp{Stamped: s, Repeats: true})
	t.add(s)
}

// end ends the record s because the check open failed at the time at. Its client is told with that status.
func (t *telling) end(s flow.Stamped, status string, at time.Time, open *Open) {
	s = t.a.endTelling(s, flow.EndExpired, t.status(s, status))
	t.a.addExpired(ExpiredSubscription{Stamped: s, Time: at, Reason: open.Reason, Class: open.Class})
	t.add(s)
}

func (t *telling) add(s flow.Stamped) {
	if s.Tell != "" {
		t.told = append(t.told, s)
	}
}

// status returns what the client of s is told: nothing of a page that is only linked to and was not read before.
func (t *telling) status(s flow.Stamped, status string) string {
	if s.Followed == nil {
		return status
	}
	n := t.a.p.Document(s.Document).N
	if t.made[s.Document] > 0 {
		n--
	}
	if n == 0 {
		return ""
	}
	return status
}

// sinks returns the names, sorted, of the sinks that are told.
func (t *telling) sinks() []string {
	var all []string
	for _, s := range t.told {
		all = append(all, s.Subscription.Sinks...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tell tells the clients.
func (t *telling) tell(o flow.Outcome, open *Open) {
	if len(t.told) == 0 {
		return
	}
	p := t.a.p
	t.a.emit(outage{flow.Outage{
		Page: p.URL, Incarnation: p.Incarnation, First: t.first, Stamp: p.Stamp, Lineage: flow.Lineage(t.a.Position),
		Time: t.a.checkTime(o), Since: p.FailedSince, Failures: p.Failures, Class: open.Class, Reason: open.Reason,
	}})
}

// expirePage ends the page, whose subscriptions have ended, because the check open, made at the
// time at, failed.
func (a *applier) expirePage(at time.Time, open *Open) {
	p := a.p
	e := &Expiry{Time: at, Class: open.Class, Reason: open.Reason, Failures: p.Failures, Keep: p.Keep}
	if p.Expiry != nil {
		e.Keep = append(e.Keep, p.Expiry.Keep...)
		slices.Sort(e.Keep)
	}
	a.emit(pageEnded{p.Incarnation, e, p.leavesState(e)})
	a.clearPage(e)
}
