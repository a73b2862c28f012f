package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// subscribe adds one subscription.
func (a *applier) subscribe(s subscribe) {
	if s.Existing != nil {
		a.emit(decide{Refusal: conflictRefusal(s.Subscription)})
		return
	}
	if s.Expired != nil && s.Expired.End == flow.EndPaused {
		a.emit(decide{Refusal: &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("%s is paused for client %q; resume it, or cancel it first", s.Subscription.URL, s.Subscription.Client)}})
		return
	}
	var former []flow.Former
	if s.Expired != nil {
		a.removeExpired(*s.Expired)
		former = formerReceivers(s.Expired.Stamped, s.Subscription, a.Position)
	}
	a.beginSubscription(s.Subscription, s.Origin, a.Position, former, time.Time{})
	a.removeUnwatched()
	a.emit(decide{})
}

// replace carries out a replace command.
func (a *applier) replace(r replace) {
	existing := make(map[string]flow.Stamped, len(r.Existing))
	for _, e := range r.Existing {
		existing[subscriptionsName+e.Name()] = e
	}
	expired := make(map[string]ExpiredSubscription, len(r.Expired))
	for _, x := range r.Expired {
		expired[subscriptionsName+x.Name()] = x
	}
	said := decide{Reply: r.Reply}
	say := func(s pipeline.Subscription, outcome, reason string) {
		said.Applied = append(said.Applied, flow.Applied{Client: s.Client, Document: flow.DocumentID(a.URL, s.View), Outcome: outcome, Reason: reason})
	}
	spared := make(map[string]bool, len(r.Spared)) // clients of which nothing ends
	for _, client := range r.Spared {
		spared[client] = true
	}
	wanted := make(map[string]bool, len(r.Subscriptions))
	for i, s := range r.Subscriptions {
		name := a.storedName(s)
		wanted[name] = true
		e, stands := existing[name]
		x, listed := expired[name]
		switch {
		case r.Refused[i] != nil:
			spared[s.Client] = true
			say(s, flow.AppliedRefused, r.Refused[i].Error())
		case stands && r.isForeign(e), listed && x.End == flow.EndPaused && r.isForeign(x.Stamped):
			of := x.Stamped
			if stands {
				of = e
			}
			why := conflictRefusal(s).Message + " by a subscription made at run time, which stays; cancel it and reload the configuration to use that of the configuration"
			if flow.MadeAtRunTime(r.Origin) {
				why = fmt.Sprintf("%s by a subscription of origin %q, which stays; end that one to use this one", conflictRefusal(s).Message, of.Origin)
				spared[s.Client] = true
			} else if said.Refusal == nil {
				said.Refusal = &flow.Refusal{Code: flow.CodeConflict, Message: why}
			} else {
				said.Refusal.Message += "\n" + why
			}
			say(s, flow.AppliedRefused, why)
		case stands && e.Origin == r.Origin && equalSubscriptions(e.Subscription, s):
			say(s, flow.AppliedUnchanged, "")
		case stands:
			if s.Paused {
				a.endSubscription(e, "")
				a.beginSubscription(s, r.Origin, e.Incarnation, formerReceivers(e, s, e.Incarnation), e.Dormant)
			} else {
				a.changeSubscription(e, s, r.Origin, nil)
			}
			say(s, flow.AppliedChanged, "")
		case listed && !r.Resume && x.Origin == r.Origin && equalSubscriptions(x.Subscription, s):
			// It stays expired until it is changed or resumed.
			say(s, flow.AppliedUnchanged, "it stays "+x.state()+" until it is resumed")
		case listed && !r.Resume && x.Origin == r.Origin && x.End == flow.EndPaused && (s.Paused || !x.Subscription.Paused):
			// It stays paused, and resumes with the new settings.
			x.Former = formerReceivers(x.Stamped, s, x.Incarnation)
			x.Subscription = s
			a.emit(storeExpired{x})
			say(s, flow.AppliedChanged, "it stays paused until it is resumed")
		default:
			// The position of the command is not unique: it may list several subscriptions.
			incarnation := fmt.Sprintf("%s/%d", a.Position, i)
			var former []flow.Former
			var dormant time.Time
			outcome := flow.AppliedCreated
			if listed {
				a.removeExpired(x)
				delete(expired, name)
				former, dormant = formerReceivers(x.Stamped, s, incarnation), x.dormant()
				outcome = flow.AppliedChanged
			}
			a.beginSubscription(s, r.Origin, incarnation, former, dormant)
			say(s, outcome, "")
		}
	}
	a.replaceKeep(r)
	gone := func(e flow.Stamped) bool {
		return e.Origin == r.Origin && !wanted[subscriptionsName+e.Name()] && !spared[e.Subscription.Client]
	}
	for _, e := range r.Existing {
		if gone(e) {
			a.endSubscription(e, flow.EndCancelled)
			say(e.Subscription, flow.AppliedRemoved, "")
		}
	}
	var missing []ExpiredSubscription
	for _, x := range r.Expired {
		if gone(x.Stamped) {
			missing = append(missing, x)
			delete(expired, subscriptionsName+x.Name())
			say(x.Subscription, flow.AppliedRemoved, "")
		}
	}
	for _, x := range missing {
		a.removeExpired(x)
		// A receiver gets one timeout notification for all subscriptions of a client, so it is
		// withdrawn with the last of them.
		a.withdrawNotifications(x.Stamped, func(to pipeline.Receiver) bool {
			for _, other := range expired { // what stays
				if other.End != flow.EndPaused && other.Subscription.Client == x.Subscription.Client && hasReceiver(other.Subscription, to.Sink) {
					return true
				}
			}
			return false
		})
	}
	if slices.ContainsFunc(said.Applied, func(of flow.Applied) bool { return of.Reason != "" }) {
		r.Digest = 0
	}
	a.p.setDigest(r.Origin, r.Digest)
	a.removeUnwatched()
	a.emit(said)
}

// isForeign reports whether e is not for r to replace: one of another origin, unless both are of configurations.
func (r replace) isForeign(e flow.Stamped) bool {
	return e.Origin != r.Origin && (flow.MadeAtRunTime(e.Origin) || flow.MadeAtRunTime(r.Origin))
}

// storedName is the name under which s is stored.
func (a *applier) storedName(s pipeline.Subscription) string {
	return subscriptionName(flow.DocumentID(a.URL, s.View), s.Client)
}

// cancel ends a client's subscriptions and deletes its expired ones.
func (a *applier) cancel(c cancel) {
	if len(c.Existing)+len(c.Expired) == 0 {
		if c.Root != "" {
			a.emit(decide{Refusal: &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf(
				"client %q watches this page only because %s links to it; cancel the subscription to %s, or exclude this page there", c.Client, c.Root, c.Root)}})
			return
		}
		a.emit(decide{Refusal: &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("client %q has no subscription to this page", c.Client)}})
		return
	}
	for _, e := range c.Existing {
		a.endSubscription(e, flow.EndCancelled)
	}
	for _, x := range c.Expired {
		a.removeExpired(x)
		a.withdrawNotifications(x.Stamped, nil)
	}
	a.removeUnwatched()
	a.emit(decide{})
}

// beginSubscription adds s, and pauses it where it is to begin so.
func (a *applier) beginSubscription(s pipeline.Subscription, origin, incarnation string, former []flow.Former, dormant time.Time) {
	r := a.addSubscription(s, origin, incarnation, former, nil, dormant)
	if s.Paused {
		a.pauseSubscription(r, time.Time{})
	}
}

// pauseSubscription ends the record e and lists it as paused until the given time, or until it is resumed if that
// is zero.
func (a *applier) pauseSubscription(e flow.Stamped, until time.Time) {
	a.addExpired(ExpiredSubscription{Stamped: a.endSubscription(e, flow.EndPaused), Time: a.Now, Reason: "paused", PausedUntil: until})
}

// addSubscription begins a record for s, and an incarnation of the page if there is none. former are the
// receivers to which earlier records of the same document and client may still deliver. followed is
// set if s is part of a tree, and dormant if the client was told of a timeout before a pause.
func (a *applier) addSubscription(s pipeline.Subscription, origin, incarnation string, former []flow.Former, followed *flow.Followed, dormant time.Time) flow.Stamped {
	return a.beginRecord(flow.Stamped{
		Incarnation: incarnation, Origin: origin, Subscription: s, Former: former, Followed: followed, Dormant: dormant,
	})
}

// changeSubscription puts a record for s in place of the record e of the same subscription.
func (a *applier) changeSubscription(e flow.Stamped, s pipeline.Subscription, origin string, followed *flow.Followed) {
	a.endSubscription(e, "")
	a.beginRecord(flow.Stamped{
		Incarnation: e.Incarnation, Origin: origin, Subscription: s, Former: formerReceivers(e, s, e.Incarnation), Followed: followed,
		Dormant: e.Dormant,
	})
}

// beginRecord begins the record r, of which it fills in the page, the document and the numbers.
func (a *applier) beginRecord(r flow.Stamped) flow.Stamped {
	a.beginIncarnation()
	p, s := a.p, r.Subscription
	d := a.beginDocument(s.View)
	d.Subscriptions++
	d.countLoud(s, 1)
	p.countInterval(s.Interval, 1)
	p.countOrigin(r.Origin, 1)
	if after := s.Expire.After; after > 0 && (p.LeastAfter == 0 || after < p.LeastAfter) {
		p.LeastAfter = after
	}
	if !r.Dormant.IsZero() {
		p.Dormant++
	} else if !p.DormantSince.IsZero() {
		p.DormantSince, p.Soon = time.Time{}, true // it waits for nothing yet
	}
	p.Stamp++
	r.Page, r.PageIncarnation, r.Document = p.URL, p.Incarnation, d.ID
	r.Stamp, r.From, r.Until = p.Stamp, d.N, flow.Forever
	a.emit(stamp{Stamped: r})
	a.countFollow(r, 1)
	return r
}

// endSubscription ends the record e. why is one of the flow.End constants, or empty if another record of
// the same subscription follows. It returns the ended record.
func (a *applier) endSubscription(e flow.Stamped, why string) flow.Stamped {
	return a.endTelling(e, why, "")
}

// endTelling is endSubscription, and its client is told of the outage with the status tell unless that is empty.
func (a *applier) endTelling(e flow.Stamped, why, tell string) flow.Stamped {
	p := a.p
	d := p.Document(e.Document)
	d.Subscriptions--
	d.countLoud(e.Subscription, -1)
	p.countInterval(e.Subscription.Interval, -1)
	p.countOrigin(e.Origin, -1)
	if !e.Dormant.IsZero() {
		p.Dormant--
	}
	p.Stamp++
	e.Stamp, e.Until, e.End, e.Tell = p.Stamp, d.N, why, tell
	a.emit(stamp{Stamped: e})
	a.countFollow(e, -1)
	if why == flow.EndCancelled {
		a.withdrawNotifications(e, nil)
	}
	return e
}

// withdrawNotifications takes back undelivered notifications of s and of the records before it, except at
// receivers for which kept is true.
func (a *applier) withdrawNotifications(s flow.Stamped, kept func(pipeline.Receiver) bool) {
	for _, f := range receiversTold(s) {
		if kept == nil || !kept(f.Receiver) {
			a.emit(withdraw{flow.Withdraw{Receiver: f.Receiver, Subscription: f.Subscription, Page: s.Page}})
		}
	}
}

// receiversTold lists the receivers to which s and the records before it may have sent notifications.
func receiversTold(s flow.Stamped) []flow.Former {
	all := slices.Clone(s.Former)
	for _, r := range s.Subscription.Receivers() {
		all = append(all, flow.Former{Receiver: r, Subscription: s.Incarnation})
	}
	return all
}

// maxFormer bounds Stamped.Former. Notifications of the oldest entries were delivered or given
// up long ago.
const maxFormer = 64

// formerReceivers returns Stamped.Former for the record of next, which follows e and has the given
// incarnation.
func formerReceivers(e flow.Stamped, next pipeline.Subscription, incarnation string) []flow.Former {
	former := slices.DeleteFunc(receiversTold(e), func(f flow.Former) bool {
		return f.Subscription == incarnation && hasReceiver(next, f.Receiver.Sink)
	})
	if len(former) == 0 {
		return nil
	}
	return former[max(len(former)-maxFormer, 0):]
}

// equalSubscriptions reports whether two subscriptions are equal.
func equalSubscriptions(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// replaceKeep sets whether the origin of r keeps the page without subscriptions.
func (a *applier) replaceKeep(r replace) {
	gone := a.p.Expiry
	switch {
	case r.Keep && !r.Resume && gone != nil && slices.Contains(gone.Keep, r.Origin) &&
		slices.Contains(a.p.Unasked, r.Origin) == (r.KeepInterval == pipeline.Never):
		// It stays expired until it is changed or resumed.
	case r.Keep:
		a.keepPage(r.Origin)
		a.p.setAsked(r.Origin, r.KeepInterval)
		a.p.setLanguage(r.Origin, r.Language)
		a.p.setRetention(r.Origin, r.Retention)
		a.p.setExpire(r.Origin, r.Expire)
	case r.Client == "":
		a.p.Keep = slices.DeleteFunc(a.p.Keep, func(o string) bool { return o == r.Origin })
		a.p.setAsked(r.Origin, pipeline.Interval{})
		a.p.setLanguage(r.Origin, "")
		a.p.setRetention(r.Origin, retention{})
		a.p.setExpire(r.Origin, pipeline.Expire{})
		a.forgetKept(r.Origin)
	}
}

// forgetKept forgets that origin kept the page before the page expired.
func (a *applier) forgetKept(origin string) {
	p := a.p
	if p.Expiry == nil {
		return
	}
	p.Expiry.Keep = slices.DeleteFunc(p.Expiry.Keep, func(o string) bool { return o == origin })
	if a.exists() && len(p.Expiry.Keep) == 0 {
		p.Expiry = nil
	}
}

// keepPage notes that origin keeps the page without subscriptions. The page then has a document for
// the whole page.
func (a *applier) keepPage(origin string) {
	a.beginIncarnation()
	a.forgetKept(origin)
	a.beginDocument(pipeline.View{})
	if !slices.Contains(a.p.Keep, origin) {
		a.p.Keep = append(a.p.Keep, origin)
		slices.Sort(a.p.Keep)
	}
}

// beginDocument returns the document of v as Page.addDocument does. One that rested before this event is read as soon
// as possible.
func (a *applier) beginDocument(v pipeline.View) *Document {
	d := a.p.addDocument(v)
	if slices.Contains(a.resting, d.ID) {
		d.Since = a.p.Check // the outstanding request may have been made before the pause
		a.p.Soon = true
	}
	return d
}

// beginIncarnation begins an incarnation of the page if there is none.
func (a *applier) beginIncarnation() {
	if a.exists() {
		return
	}
	*a.p = Page{
		URL: a.URL, Incarnation: a.Position, Progress: Progress{Due: a.Now, Records: a.p.Records, Quiet: a.p.Quiet},
		Expired: a.p.Expired, Unreachable: a.p.Unreachable, Expiry: a.p.Expiry, Unasked: a.p.Unasked, Languages: a.p.Languages, Retentions: a.p.Retentions, Expires: a.p.Expires,
		PauseEnd: a.p.PauseEnd, Origins: a.p.Origins,
	}
	if a.p.Expiry != nil && len(a.p.Expiry.Keep) == 0 {
		a.p.Expiry = nil
	}
}

// removeUnwatched removes documents that nobody watches any more. If none is left, the page ends. A document all
// of whose subscriptions are paused stays with its versions, and is not read.
func (a *applier) removeUnwatched() {
	a.dropUnusedLinks()
	p := a.p
	if !a.exists() {
		if p.URL != "" && !p.leavesState(p.Expiry) {
			a.emit(pageEnded{}) // of no incarnation: later stages forget the page
			a.clearPage(nil)
		}
		return
	}
	for _, d := range slices.Clone(p.Documents) {
		switch {
		case !p.isResting(&d):
		case d.Paused > 0:
			rested := p.Document(d.ID)
			rested.Rested = true
			rested.forgetCandidate()
		default:
			p.removeDocument(d.ID)
			a.emit(dropDocument{d.ID})
		}
	}
	if len(p.Documents) == 0 {
		a.emit(pageEnded{p.Incarnation, nil, p.leavesState(p.Expiry)})
		a.clearPage(p.Expiry)
	}
}

// leavesState reports whether expired subscriptions, or origins in e that kept the page, must be
// stored after p ended.
func (p *Page) leavesState(e *Expiry) bool { return p.Expired > 0 || e != nil && len(e.Keep) > 0 }

// clearPage clears the page, except what is stored of an expired page.
func (a *applier) clearPage(e *Expiry) {
	p := a.p
	if !p.leavesState(e) {
		*a.p = Page{}
		a.emit(deleteState{All: true})
		return
	}
	*a.p = Page{
		URL: p.URL, Expired: p.Expired, Unreachable: p.Unreachable, Expiry: e, Progress: Progress{Records: p.Records, Quiet: p.Quiet},
		Unasked: p.Unasked, Languages: p.Languages, Retentions: p.Retentions, Expires: p.Expires, PauseEnd: p.PauseEnd,
		Origins: p.Origins,
	}
	a.emit(deleteState{})
}
