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

// expireReceiver notes that a receiver expired and ends the subscriptions that have no other
// receiver left. It reports whether anything changed.
func (a *applier) expireReceiver(e expire) bool {
	addressed := func(s flow.Stamped) bool { return hasReceiver(s.Subscription, e.Receiver) }
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
		if addressed(s) && p.lostAllReceivers(s.Subscription) {
			a.addExpired(ExpiredSubscription{Stamped: a.endSubscription(s, flow.EndReceiver), Time: a.Now, Reason: e.Reason})
			ended = true
		}
	}
	a.removeUnwatched()
	return ended || !marked
}

// lostAllReceivers reports whether all receivers of s expired.
func (p *Page) lostAllReceivers(s pipeline.Subscription) bool {
	return !slices.ContainsFunc(s.Receivers(), func(r pipeline.Receiver) bool {
		_, expired := slices.BinarySearch(p.Unreachable, r.Sink)
		return !expired
	})
}

// pause ends a client's subscriptions and lists them as paused. It also sets the end of the pause of
// those that are paused already.
func (a *applier) pause(p pause) {
	paused := slices.ContainsFunc(p.Expired, func(x ExpiredSubscription) bool { return x.End == flow.EndPaused })
	if len(p.Existing) == 0 && !paused {
		why := fmt.Sprintf("client %q has no subscription to this page", p.Client)
		if len(p.Expired) > 0 {
			why = fmt.Sprintf("the subscriptions of client %q to this page are expired; there is nothing to pause", p.Client)
		}
		a.emit(decide{Refusal: &flow.Refusal{Code: flow.CodeNotFound, Message: why}})
		return
	}
	for _, x := range p.Expired {
		if x.End == flow.EndPaused {
			x.PausedUntil = p.Until
			a.emit(storeExpired{x})
		}
	}
	for _, e := range p.Existing {
		a.pauseSubscription(e, p.Until)
	}
	a.notePauseEnd(p.Until)
	a.removeUnwatched()
	a.emit(decide{})
}

// resume restarts expired and paused subscriptions: of one client or of all, or because a receiver works
// again. It reports whether it changed or decided anything.
func (a *applier) resume(r resume) bool {
	p, resumed := a.p, false
	if i, ok := slices.BinarySearch(p.Unreachable, r.Receiver); ok {
		p.Unreachable = slices.Delete(p.Unreachable, i, i+1)
		resumed = true
	}
	for i, x := range r.Expired {
		if r.Client != "" && x.Subscription.Client != r.Client ||
			r.Receiver != "" && (x.End != flow.EndReceiver || !hasReceiver(x.Subscription, r.Receiver)) ||
			r.Due && !x.pauseOver(a.Now) {
			if r.Due {
				a.notePauseEnd(x.PausedUntil)
			}
			continue
		}
		a.removeExpired(x)
		incarnation := fmt.Sprintf("%s/%d", a.Position, i)
		a.addSubscription(x.Subscription, x.Origin, incarnation, formerReceivers(x.Stamped, x.Subscription, incarnation), x.Followed, x.dormant())
		p.Soon = p.Soon || !x.dormant().IsZero()
		resumed = true
	}
	if r.Client == "" && r.Receiver == "" && !r.Due && p.Expiry != nil {
		for _, origin := range slices.Clone(p.Expiry.Keep) {
			a.keepPage(origin)
			resumed = true
		}
	}
	switch {
	case resumed:
		a.emit(decide{})
	case r.Due:
		return !p.PauseEnd.IsZero() // the next pause ends later
	case r.Receiver == "":
		a.emit(decide{Refusal: &flow.Refusal{Code: flow.CodeNotFound, Message: "no subscription to this page is expired or paused"}})
	}
	return resumed || r.Receiver == ""
}

// dormant returns when the client of x, which pauses, was told of a timeout that no recovery has followed; the zero
// value if it was not. After the pause the client is told of the next answer.
func (x *ExpiredSubscription) dormant() time.Time {
	if x.End != flow.EndPaused {
		return time.Time{}
	}
	return x.Dormant
}

// state says in one word what became of x.
func (x *ExpiredSubscription) state() string {
	if x.End == flow.EndPaused {
		return "paused"
	}
	return "expired"
}

// pauseOver reports whether the pause of x ended: it was paused until now, or until an earlier time.
func (x *ExpiredSubscription) pauseOver(now time.Time) bool {
	return x.End == flow.EndPaused && !x.PausedUntil.IsZero() && !x.PausedUntil.After(now)
}

// notePauseEnd sets Page.PauseEnd where a pause ends at until, and no other one earlier.
func (a *applier) notePauseEnd(until time.Time) {
	if end := &a.p.PauseEnd; !until.IsZero() && (end.IsZero() || until.Before(*end)) {
		*end = until
	}
}

// resumeDuePauses asks for the resumption of the subscriptions whose pause ends now. A command does that,
// because it has a position in the log, after which the new records are named.
func (a *applier) resumeDuePauses() {
	end := a.p.PauseEnd
	if end.IsZero() || end.After(a.Now) {
		return
	}
	a.p.PauseEnd = time.Time{} // the command sets that of the remaining ones
	a.emit(resumeDue{end})
}

// addExpired adds x to the expired subscriptions.
func (a *applier) addExpired(x ExpiredSubscription) {
	a.p.Expired++
	a.p.countOrigin(x.Origin, 1)
	a.countPaused(x, 1)
	a.emit(storeExpired{x})
}

// removeExpired removes x from the expired subscriptions.
func (a *applier) removeExpired(x ExpiredSubscription) {
	a.p.Expired--
	a.p.countOrigin(x.Origin, -1)
	a.countPaused(x, -1)
	a.emit(deleteExpired{x.Name()})
}

// countPaused adds n (1 or -1) to the paused subscriptions of the document of x, unless x is not paused
// or the incarnation of the page ended in which it was.
func (a *applier) countPaused(x ExpiredSubscription, n int) {
	if x.End == flow.EndPaused && x.PageIncarnation == a.p.Incarnation {
		a.p.Document(x.Document).Paused += n
	}
}

// Expired returns the expired subscriptions of the page whose state st is, sorted by document
// and client.
func Expired(st flow.State) ([]ExpiredSubscription, error) {
	return scanValues[ExpiredSubscription](st, expiredNames)
}

// Origins returns the origins that subscribe to the page whose state st is or keep it; also those whose subscriptions, or
// whose keeping, expired. Its values are the digests of their last lists, 0 where these are not in force as they were
// given. It reads one value, because a start does so for every page.
func Origins(st flow.State) (map[string]uint64, error) {
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
	origins := make(map[string]uint64, len(p.Origins))
	if p.Expiry != nil {
		p.Keep = append(p.Keep, p.Expiry.Keep...)
	}
	for _, name := range p.Keep {
		origins[name] = 0
	}
	for _, o := range p.Origins {
		origins[o.Name] = o.Digest
	}
	return origins, nil
}

// ClientsOf returns the clients, sorted, who have subscriptions of origin to the page whose state st is, also expired or
// paused ones.
func ClientsOf(st flow.State, origin string) ([]string, error) {
	all, err := Subscriptions(st)
	if err != nil {
		return nil, err
	}
	expired, err := Expired(st)
	for _, x := range expired {
		all = append(all, x.Stamped)
	}
	var clients []string
	for _, s := range all {
		if s.Origin == origin {
			clients = append(clients, s.Subscription.Client)
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients), err
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

// hasReceiver reports whether receiver is one of the receivers of s.
func hasReceiver(s pipeline.Subscription, receiver string) bool {
	return slices.ContainsFunc(s.Receivers(), func(r pipeline.Receiver) bool { return r.Sink == receiver })
}

// emitHealth publishes h, which the check of o caused, about the page or about h.Document.
// A page that is only linked to, and was never read, is no news.
func (a *applier) emitHealth(o flow.Outcome, h pipeline.Health) {
	if a.p.isDeadLink() {
		return
	}
	about := a.p.Incarnation
	if h.Document != "" {
		about += "/" + h.Document
	}
	h.ID = flow.HealthID(h.Event, about, a.p.checkNumber(o))
	h.URL, h.Time = a.p.URL, a.checkTime(o)
	a.emit(healthEvent{h})
}

// checkTime is when the check of o was made.
func (a *applier) checkTime(o flow.Outcome) time.Time {
	if o.Time.IsZero() {
		return a.Now
	}
	return o.Time
}

// documentGone notes that d is not on its page any more.
func (a *applier) documentGone(d *Document, o flow.Outcome, class, reason string) {
	if !d.GoneSince.IsZero() {
		return
	}
	d.GoneSince, d.GoneClass = a.checkTime(o), class
	event := pipeline.HealthSelectorGone
	if class == pipeline.FailReplaced {
		event = pipeline.HealthPageReplaced
	}
	a.emitHealth(o, pipeline.Health{Event: event, Document: d.ID, Class: class, Reason: reason, Since: d.GoneSince})
}

// documentFound notes that d is on its page.
func (a *applier) documentFound(d *Document, o flow.Outcome) {
	if d.GoneSince.IsZero() {
		return
	}
	a.emitHealth(o, pipeline.Health{Event: pipeline.HealthRecovered, Document: d.ID, Since: d.GoneSince})
	d.GoneSince, d.GoneClass = time.Time{}, ""
}
