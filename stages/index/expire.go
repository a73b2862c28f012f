package index

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// ExpiredSubscription is a subscription that ended because its page or all of its receivers
// expired, or because it was paused. It is stored until it is resumed or cancelled; what
// expired, also until it is changed or added again.
type ExpiredSubscription struct {
	// Stamped is the ended record; its End is flow.EndExpired, EndReceiver or EndPaused.
	flow.Stamped
	// Time is when it expired or was paused: the time of the last check, when its last receiver
	// expired, or the time of the command.
	Time time.Time `json:"expired"`
	// Reason says why, in words for the user. Class is the class of the page's last failure;
	// empty if receivers were the cause.
	Reason string `json:"reason,omitempty"`
	Class  string `json:"class,omitempty"`
	// PausedUntil is when a paused subscription is resumed; zero if its pause has no end.
	PausedUntil time.Time `json:"paused_until,omitzero"`
}

// Expiry says when and why a page expired.
type Expiry struct {
	// Time is that of the last check, Class and Reason describe its failure. Failures is how
	// many checks in a row failed.
	Time     time.Time `cbor:"1,keyasint"`
	Class    string    `cbor:"2,keyasint,omitempty"`
	Reason   string    `cbor:"3,keyasint,omitempty"`
	Failures int       `cbor:"4,keyasint,omitempty"`
	// Keep lists the origins that kept the page without subscriptions and have not asked for it
	// again, sorted.
	Keep []string `cbor:"5,keyasint,omitempty"`
}

const (
	// busyChecks is how many checks in a row may find the host too busy before such checks
	// count as failed.
	busyChecks = 100
	// failingAfter is after how many failures in a row a failing event is published.
	failingAfter = 3
)

// mayExpire reports whether p may expire with o. Then apply needs the page's subscriptions.
func (p *Page) mayExpire(o flow.Outcome, r rules) bool {
	if p.Open == nil || r.ExpireAfter <= 0 || p.Failures+1 < r.ExpireAfter {
		return false
	}
	return o.Kind != flow.OutcomeUnchanged || o.Parts > 0 || p.Open.Bare
}

// judge counts the complete check open, whose last outcome is o, as reached or failed. It
// reports whether the page expired.
func (a *application) judge(o flow.Outcome, open *Open) bool {
	p := a.p
	switch {
	case open.Reached:
		if p.Failing {
			a.health(o, pipeline.Health{Event: pipeline.HealthRecovered, Since: p.FailedSince, Count: p.Failures})
		}
		p.Failures, p.Busy, p.FailedSince, p.Failing = 0, 0, time.Time{}, false
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
		p.FailedSince = a.at(o)
	}
	said := pipeline.Health{Class: open.Class, Reason: open.Reason, Since: p.FailedSince, Count: p.Failures}
	if a.Rules.ExpireAfter > 0 && p.Failures >= a.Rules.ExpireAfter {
		said.Event = pipeline.HealthExpired
		for _, s := range a.existing {
			said.Sinks = append(said.Sinks, s.Subscription.Sinks...)
		}
		slices.Sort(said.Sinks)
		said.Sinks = slices.Compact(said.Sinks)
		a.health(o, said)
		a.expirePage(a.at(o), open)
		return true
	}
	if p.Failures >= failingAfter && !p.Failing && !p.deadLink() {
		p.Failing = true
		said.Event = pipeline.HealthFailing
		a.health(o, said)
	}
	return false
}

// expirePage ends the page and all of its subscriptions, because the check open, made at the
// time at, failed.
func (a *application) expirePage(at time.Time, open *Open) {
	p := a.p
	e := &Expiry{Time: at, Class: open.Class, Reason: open.Reason, Failures: p.Failures, Keep: p.Keep}
	if p.Expiry != nil {
		e.Keep = append(e.Keep, p.Expiry.Keep...)
		slices.Sort(e.Keep)
	}
	for _, s := range a.existing {
		a.list(ExpiredSubscription{Stamped: a.end(s, flow.EndExpired), Time: at, Reason: open.Reason, Class: open.Class})
	}
	a.emit(ended{p.Incarnation, p.Stamp, &flow.Expiry{
		Time: at, Class: open.Class, Reason: open.Reason, Failures: p.Failures, Lineage: flow.Lineage(a.Position),
	}, p.leaves(e)})
	a.over(e)
}

// expireReceiver notes that a receiver expired and ends the subscriptions that have no other
// receiver left. It reports whether anything changed.
func (a *application) expireReceiver(e expire) bool {
	addressed := func(s flow.Stamped) bool { return names(s.Subscription, e.Receiver) }
	if !slices.ContainsFunc(e.Existing, addressed) {
		return false
	}
	p := a.p
	i, marked := slices.BinarySearch(p.Unreachable, e.Receiver)
	if !marked {
		p.Unreachable = slices.Insert(p.Unreachable, i, e.Receiver)
	}
	ended := false
	for _, s := range e.Existing {
		if addressed(s) && p.unreachable(s.Subscription) {
			a.list(ExpiredSubscription{Stamped: a.end(s, flow.EndReceiver), Time: a.Now, Reason: e.Reason})
			ended = true
		}
	}
	a.tidy()
	return ended || !marked
}

// unreachable reports whether all receivers of s expired.
func (p *Page) unreachable(s pipeline.Subscription) bool {
	return !slices.ContainsFunc(s.Receivers(), func(r pipeline.Receiver) bool {
		_, expired := slices.BinarySearch(p.Unreachable, r.Sink)
		return !expired
	})
}

// pause ends a client's subscriptions and lists them as paused. It also sets the end of the pause of
// those that are paused already.
func (a *application) pause(p pause) {
	paused := slices.ContainsFunc(p.Expired, func(x ExpiredSubscription) bool { return x.End == flow.EndPaused })
	if len(p.Existing) == 0 && !paused {
		why := fmt.Sprintf("client %q has no subscription to this page", p.Client)
		if len(p.Expired) > 0 {
			why = fmt.Sprintf("the subscriptions of client %q to this page are expired; there is nothing to pause", p.Client)
		}
		a.emit(decide{&flow.Refusal{Code: flow.CodeNotFound, Message: why}})
		return
	}
	for _, x := range p.Expired {
		if x.End == flow.EndPaused {
			x.PausedUntil = p.Until
			a.emit(listExpired{x})
		}
	}
	for _, e := range p.Existing {
		a.list(ExpiredSubscription{Stamped: a.end(e, flow.EndPaused), Time: a.Now, Reason: "paused", PausedUntil: p.Until})
	}
	a.pausesUntil(p.Until)
	a.tidy()
	a.emit(decide{})
}

// resume restarts expired and paused subscriptions: of one client or of all, or because a receiver works
// again. It reports whether it changed or decided anything.
func (a *application) resume(r resume) bool {
	p, resumed := a.p, false
	if i, ok := slices.BinarySearch(p.Unreachable, r.Receiver); ok {
		p.Unreachable = slices.Delete(p.Unreachable, i, i+1)
		resumed = true
	}
	for i, x := range r.Expired {
		if r.Client != "" && x.Subscription.Client != r.Client ||
			r.Receiver != "" && (x.End != flow.EndReceiver || !names(x.Subscription, r.Receiver)) ||
			r.Due && !x.over(a.Now) {
			if r.Due {
				a.pausesUntil(x.PausedUntil)
			}
			continue
		}
		a.unlist(x)
		incarnation := fmt.Sprintf("%s/%d", a.Position, i)
		a.add(x.Subscription, x.Origin, incarnation, succeed(x.Stamped, x.Subscription, incarnation), x.Followed)
		resumed = true
	}
	if r.Client == "" && r.Receiver == "" && !r.Due && p.Expiry != nil {
		for _, origin := range slices.Clone(p.Expiry.Keep) {
			a.keep(origin)
			resumed = true
		}
	}
	switch {
	case resumed:
		a.emit(decide{})
	case r.Due:
		return !p.PauseEnd.IsZero() // the next pause ends later
	case r.Receiver == "":
		a.emit(decide{&flow.Refusal{Code: flow.CodeNotFound, Message: "no subscription to this page is expired or paused"}})
	}
	return resumed || r.Receiver == ""
}

// over reports whether x was paused until now, or until an earlier time.
func (x *ExpiredSubscription) over(now time.Time) bool {
	return x.End == flow.EndPaused && !x.PausedUntil.IsZero() && !x.PausedUntil.After(now)
}

// pausesUntil sets Page.PauseEnd where a pause ends at until, and no other one earlier.
func (a *application) pausesUntil(until time.Time) {
	if end := &a.p.PauseEnd; !until.IsZero() && (end.IsZero() || until.Before(*end)) {
		*end = until
	}
}

// endPauses asks for the resumption of the subscriptions whose pause ends now. A command does that,
// because it has a position in the log, after which the new records are named.
func (a *application) endPauses() {
	end := a.p.PauseEnd
	if end.IsZero() || end.After(a.Now) {
		return
	}
	a.p.PauseEnd = time.Time{} // the command sets that of the remaining ones
	a.emit(resumeDue{end})
}

// list adds x to the expired subscriptions.
func (a *application) list(x ExpiredSubscription) {
	a.p.Expired++
	a.p.countOrigin(x.Origin, 1)
	a.countPaused(x, 1)
	a.emit(listExpired{x})
}

// unlist removes x from the expired subscriptions.
func (a *application) unlist(x ExpiredSubscription) {
	a.p.Expired--
	a.p.countOrigin(x.Origin, -1)
	a.countPaused(x, -1)
	a.emit(dropExpired{nameOf(x.Stamped)})
}

// countPaused adds n (1 or -1) to the paused subscriptions of the document of x, unless x is not paused
// or the incarnation of the page ended in which it was.
func (a *application) countPaused(x ExpiredSubscription, n int) {
	if x.End == flow.EndPaused && x.PageIncarnation == a.p.Incarnation {
		a.p.Document(x.Document).Paused += n
	}
}

// Expired returns the expired subscriptions of the page whose state st is, sorted by document
// and client.
func Expired(st flow.State) ([]ExpiredSubscription, error) {
	return scanJSON[ExpiredSubscription](st, expiredNames)
}

// expiredSubscription returns the expired subscription of a document and client, or nil.
func expiredSubscription(st flow.State, document, client string) (*ExpiredSubscription, error) {
	return getJSON[ExpiredSubscription](st, expiredName(document, client))
}

// Origins returns the origins, sorted, that subscribe to the page whose state st is or keep it;
// also those whose subscriptions, or whose keeping, expired. It reads one value, because a start does
// so for every page.
func Origins(st flow.State) ([]string, error) {
	b, ok, err := st.Get(pageName)
	if err != nil || !ok {
		return nil, err
	}
	var p struct { // the part of Page that says it
		Keep    []string      `cbor:"4,keyasint"`
		Origins []originCount `cbor:"47,keyasint"`
		Expiry  *struct {
			Keep []string `cbor:"5,keyasint"`
		} `cbor:"30,keyasint"`
	}
	if err := decode(b, &p); err != nil {
		return nil, err
	}
	origins := p.Keep
	if p.Expiry != nil {
		origins = append(origins, p.Expiry.Keep...)
	}
	for _, o := range p.Origins {
		origins = append(origins, o.Name)
	}
	slices.Sort(origins)
	return slices.Compact(origins), nil
}

// Receivers returns the names, sorted, of the receivers for which an ExpireCommand or a
// ResumeCommand can change the page whose state st is.
func Receivers(st flow.State) ([]string, error) {
	p, err := Load(st)
	if err != nil {
		return nil, err
	}
	standing, err := Subscriptions(st)
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(p.Unreachable)
	for _, s := range standing {
		for _, r := range s.Subscription.Receivers() {
			ids = append(ids, r.Sink)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// names reports whether receiver is one of the receivers of s.
func names(s pipeline.Subscription, receiver string) bool {
	return slices.ContainsFunc(s.Receivers(), func(r pipeline.Receiver) bool { return r.Sink == receiver })
}

// health publishes h, which the check of o caused, about the page or about h.Document.
// A page that is only linked to, and was never read, is no news.
func (a *application) health(o flow.Outcome, h pipeline.Health) {
	if a.p.deadLink() {
		return
	}
	about := a.p.Incarnation
	if h.Document != "" {
		about += "/" + h.Document
	}
	h.ID = flow.HealthID(h.Event, about, a.p.number(o))
	h.URL, h.Time = a.p.URL, a.at(o)
	a.emit(healthEvent{h})
}

// at is when the check of o was made.
func (a *application) at(o flow.Outcome) time.Time {
	if o.Time.IsZero() {
		return a.Now
	}
	return o.Time
}

// missed notes that d is not on its page any more.
func (a *application) missed(d *Document, o flow.Outcome, class, reason string) {
	if !d.GoneSince.IsZero() {
		return
	}
	d.GoneSince, d.GoneClass = a.at(o), class
	event := pipeline.HealthSelectorGone
	if class == pipeline.FailReplaced {
		event = pipeline.HealthPageReplaced
	}
	a.health(o, pipeline.Health{Event: event, Document: d.ID, Class: class, Reason: reason, Since: d.GoneSince})
}

// found notes that d is on its page.
func (a *application) found(d *Document, o flow.Outcome) {
	if d.GoneSince.IsZero() {
		return
	}
	a.health(o, pipeline.Health{Event: pipeline.HealthRecovered, Document: d.ID, Since: d.GoneSince})
	d.GoneSince, d.GoneClass = time.Time{}, ""
}
