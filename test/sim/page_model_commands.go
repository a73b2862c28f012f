package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// pairName returns the name of a subscription, from its client and its document.
func (t *pageModel) pairName(s pipeline.Subscription) string { return t.pairNameIn(s, nil) }

// pairNameIn is pairName for a subscription that may be part of a tree. Names sort as subscriptions are listed.
func (t *pageModel) pairNameIn(s pipeline.Subscription, f *flow.Followed) string {
	document := flow.DocumentOf(t.url, s)
	if f != nil {
		document += "+" + f.ID
	}
	return document + "/" + s.Client
}

// watchDocument returns the document of a view, which begins if it is new.
func (t *pageModel) watchDocument(v pipeline.View, position string) *documentLife {
	if t.incarnation == "" {
		t.incarnation = position
		t.world.stats.Pages++
	}
	id := flow.DocumentID(t.url, v)
	if l := t.resting[id]; l != nil {
		delete(t.resting, id)
		l.beganAfterCheck, t.documents[id] = t.lastCheck, l
	}
	if t.documents[id] == nil {
		t.documents[id] = &documentLife{id: id, incarnation: t.incarnation, view: v, beganAfterCheck: t.lastCheck, version: t.lastVersions[id]}
		t.lives = append(t.lives, t.documents[id])
	}
	return t.documents[id]
}

func (t *pageModel) addSpan(s pipeline.Subscription, origin, incarnation, position string, f *flow.Followed) {
	pair := t.pairNameIn(s, f)
	before := t.expired[pair]
	if before == nil {
		before = t.predecessor
	}
	t.predecessor = nil
	delete(t.expired, pair)
	l := t.watchDocument(s.WithDefaults().View, position)
	r := &subscriptionSpan{life: l, incarnation: incarnation, origin: origin, sub: s, from: l.version, until: flow.Forever,
		predecessor: before, followed: f}
	if before != nil && (before.incarnation == incarnation || before.paused) {
		r.told = before.told // only its settings changed, or it paused
	}
	if r.told.IsZero() {
		t.dormantSince = time.Time{} // somebody waits for the page as ever
	}
	t.world.incarnations[incarnation] = t.incarnation
	t.subscriptions[pair] = r
	t.spans = append(t.spans, r)
}

// stopSpan ends the span of a pair, which another one may follow.
func (t *pageModel) stopSpan(pair string) *subscriptionSpan {
	r := t.subscriptions[pair]
	r.until = r.life.version
	delete(t.subscriptions, pair)
	return r
}

// expectWithdrawn says that nothing more may be delivered because of r and those before it, but
// for the sinks that keep returns true for.
func (r *subscriptionSpan) expectWithdrawn(d *expectedEffects, keep func(sink string) bool) {
	for ; r != nil; r = r.predecessor {
		for _, sink := range r.sub.Sinks {
			if keep == nil || !keep(sink) {
				d.withdrawn[r.incarnation+" "+sink] = true
			}
		}
	}
}

func (t *pageModel) subscribe(c flow.SubscribeCommand, position string, d *expectedEffects) {
	pair := t.pairName(c.Subscription)
	if x := t.expired[pair]; t.subscriptions[pair] != nil || x != nil && x.paused {
		t.world.stats.RefusedCommands++
		d.expectHealth(pipeline.HealthRefused, "")
		return
	}
	t.addSpan(c.Subscription, c.Origin, position, position, nil)
}

func (t *pageModel) cancel(c flow.CancelCommand, d *expectedEffects) {
	found := false
	for pair, r := range t.subscriptions {
		if r.sub.Client == c.Client && r.followed == nil {
			t.stopSpan(pair).cancelled = true
			r.expectWithdrawn(d, nil)
			found = true
		}
	}
	for pair, r := range t.expired {
		if r.sub.Client == c.Client && r.followed == nil {
			delete(t.expired, pair)
			r.expectWithdrawn(d, nil)
			found = true
		}
	}
	if !found {
		d.expectHealth(pipeline.HealthRefused, "")
	}
	t.dropUnwatched()
}

// dropUnwatched ends the documents that nobody watches, and the page with the last of them. Documents whose
// subscriptions are all paused rest.
func (t *pageModel) dropUnwatched() {
	t.linksKnown = t.linksKnown && t.wantsLinks(true)
	for id, l := range t.documents {
		used := len(t.keep) > 0 && l.view.IsZero()
		for _, r := range t.subscriptions {
			used = used || r.life == l
		}
		if !used {
			delete(t.documents, id)
			t.resting[id] = l
			l.hasRested, l.candidate, l.timesSeen = true, "", 0
		}
	}
	for id, l := range t.resting {
		paused := false
		for _, r := range t.expired {
			paused = paused || r.paused && r.life == l
		}
		if !paused {
			t.lastVersions[id] = l.version
			delete(t.resting, id)
		}
	}
	switch {
	case len(t.documents) > 0:
	case len(t.resting) > 0:
		t.openRequest, t.mustOmitHashes = nil, false // it is not looked at until a resume
	default:
		t.endIncarnation()
	}
}

// applyList makes the list in c all that its origin wants. What expired stays so, unless it is
// changed or resumed.
func (t *pageModel) applyList(c flow.ApplyCommand, position string, d *expectedEffects) {
	wanted, spared := make(map[string]bool), make(map[string]bool)
	atRunTime := func(origin string) bool { return strings.HasPrefix(origin, "api") }
	foreign := func(r *subscriptionSpan) bool {
		return r != nil && r.origin != c.Origin && (atRunTime(r.origin) || atRunTime(c.Origin))
	}
	for i, s := range c.Subscriptions {
		wanted[t.pairName(s)] = true
		r, x := t.subscriptions[t.pairName(s)], t.expired[t.pairName(s)]
		switch {
		case foreign(r), x != nil && x.paused && foreign(x): // refused: nobody takes over what is another's
			spared[s.Client] = spared[s.Client] || atRunTime(c.Origin)
		case r != nil && r.origin == c.Origin && equalSubscriptions(r.sub, s):
		case r != nil:
			t.predecessor = t.stopSpan(t.pairName(s))
			t.addSpan(s, c.Origin, r.incarnation, position, nil)
		case x != nil && x.origin == c.Origin && equalSubscriptions(x.sub, s) && !c.Resume:
		case x != nil && x.origin == c.Origin && x.paused && !c.Resume: // it resumes with the new settings
			changed := *x
			changed.sub, changed.predecessor = s, x
			t.expired[t.pairName(s)] = &changed
		default:
			t.addSpan(s, c.Origin, fmt.Sprintf("%s/%d", position, i), position, nil)
		}
	}
	switch {
	case c.Keep && t.expiredKeep[c.Origin] && !c.Resume:
	case c.Keep:
		delete(t.expiredKeep, c.Origin)
		t.watchDocument(pipeline.View{}, position)
		t.keep[c.Origin] = true
	case c.Client == "":
		delete(t.keep, c.Origin)
		delete(t.expiredKeep, c.Origin)
	}
	left := func(pair string, r *subscriptionSpan) bool {
		return r.origin == c.Origin && !wanted[pair] && !spared[r.sub.Client] && (c.Client == "" || r.sub.Client == c.Client)
	}
	for pair, r := range t.subscriptions {
		if left(pair, r) {
			t.stopSpan(pair).cancelled = true
			r.expectWithdrawn(d, nil)
		}
	}
	stay := make(map[[2]string]bool) // clients that keep something expired, and at which sinks
	for pair, r := range t.expired {
		for _, sink := range r.sub.Sinks {
			if !left(pair, r) && !r.paused {
				stay[[2]string{r.sub.Client, sink}] = true
			}
		}
	}
	for pair, r := range t.expired {
		if left(pair, r) {
			delete(t.expired, pair)
			r.expectWithdrawn(d, func(sink string) bool { return stay[[2]string{r.sub.Client, sink}] })
		}
	}
	t.dropUnwatched()
}

func equalSubscriptions(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a.WithDefaults())
	y, errY := json.Marshal(b.WithDefaults())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// isNoOp reports whether m changes nothing, because it is about a receiver or a tree that the page has nothing to
// do with, or because what it wants is so already.
func (t *pageModel) isNoOp(m flow.Message, now time.Time) bool {
	idle := false
	switch m.Type {
	case flow.TypeTold: // it says only which versions stay
		idle = true
	case flow.TypeFollow:
		_ = decodeBody(m, func(c flow.FollowCommand) { idle = t.isFollowApplied(c) }) // applyCommand reads it again
	case flow.TypeResume:
		_ = decodeBody(m, func(c flow.ResumeCommand) { // applyCommand reads it again
			if c.Due {
				idle = true
				for _, r := range t.expired {
					idle = idle && (!r.paused || r.pausedUntil.IsZero())
				}
				return
			}
			idle = c.Receiver != "" && !t.unreachable[c.Receiver]
			for _, r := range t.expired {
				idle = idle && (!r.expiredByReceivers || !slices.Contains(r.sub.Sinks, c.Receiver))
			}
		})
	case flow.TypeExpire:
		_ = decodeBody(m, func(c flow.ExpireCommand) {
			idle = true
			for _, r := range t.subscriptions {
				elsewhere := !slices.Contains(r.sub.Sinks, c.Receiver)
				idle = idle && (elsewhere || t.unreachable[c.Receiver] && !t.allReceiversLost(r))
			}
		})
	}
	return idle
}

// allReceiversLost reports whether all receivers of r were given up.
func (t *pageModel) allReceiversLost(r *subscriptionSpan) bool {
	return !slices.ContainsFunc(r.sub.Sinks, func(sink string) bool { return !t.unreachable[sink] })
}

// pause ends the subscriptions of a client until they are resumed. Those that are paused already
// get the new end.
func (t *pageModel) pause(c flow.PauseCommand, d *expectedEffects) {
	found := false
	for _, r := range t.expired {
		if r.sub.Client == c.Client && r.paused {
			r.pausedUntil = c.Until
			found = true
		}
	}
	for pair, r := range t.subscriptions {
		if r.sub.Client == c.Client && r.followed == nil {
			t.stopSpan(pair)
			r.paused, r.pausedUntil = true, c.Until
			t.expired[pair] = r
			t.world.stats.PausedSubscriptions++
			found = true
		}
	}
	if !found {
		d.expectHealth(pipeline.HealthRefused, "")
	}
	t.dropUnwatched()
}

// resume begins anew what expired or was paused: of a client, of all, because a receiver answers again,
// or what was paused until now.
func (t *pageModel) resume(c flow.ResumeCommand, position string, now time.Time, d *expectedEffects) {
	resumed := false
	delete(t.unreachable, c.Receiver)
	var pairs []string
	for pair := range t.expired {
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs) // of document and client, as they are listed
	for i, pair := range pairs {
		r := t.expired[pair]
		if c.Client != "" && r.sub.Client != c.Client || c.Receiver != "" && (!r.expiredByReceivers || !slices.Contains(r.sub.Sinks, c.Receiver)) ||
			c.Due && !r.pauseIsOver(now) {
			continue
		}
		if r.paused {
			t.world.stats.ResumedSubscriptions++
		}
		t.addSpan(r.sub, r.origin, fmt.Sprintf("%s/%d", position, i), position, r.followed)
		resumed = true
	}
	if c.Client == "" && c.Receiver == "" && !c.Due {
		for origin := range t.expiredKeep {
			delete(t.expiredKeep, origin)
			t.watchDocument(pipeline.View{}, position)
			t.keep[origin] = true
			resumed = true
		}
	}
	if !resumed && c.Receiver == "" && !c.Due {
		d.expectHealth(pipeline.HealthRefused, "")
	}
}

// expireReceiver ends the subscriptions all of whose receivers were given up.
func (t *pageModel) expireReceiver(c flow.ExpireCommand) {
	for pair, r := range t.subscriptions {
		if !slices.Contains(r.sub.Sinks, c.Receiver) {
			continue
		}
		t.unreachable[c.Receiver] = true
		if t.allReceiversLost(r) {
			t.stopSpan(pair)
			r.expiredByReceivers = true
			t.expired[pair] = r
		}
	}
	t.dropUnwatched()
}
