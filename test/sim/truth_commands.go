package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// pair names a subscription: one of a client and a document.
func (t *truth) pair(s pipeline.Subscription) string { return t.pairOf(s, nil) }

// pairOf also names one that is part of a tree. Names sort as the subscriptions are listed.
func (t *truth) pairOf(s pipeline.Subscription, f *flow.Followed) string {
	document := flow.DocumentID(t.url, s.View)
	if f != nil {
		document += "+" + f.ID
	}
	return document + "/" + s.Client
}

// begin returns the document of a view, which begins if it is new.
func (t *truth) begin(v pipeline.View, position string) *life {
	if t.incarnation == "" {
		t.incarnation = position
		t.w.stats.Pages++
	}
	id := flow.DocumentID(t.url, v)
	if l := t.resting[id]; l != nil {
		delete(t.resting, id)
		l.since, t.docs[id] = t.check, l
	}
	if t.docs[id] == nil {
		t.docs[id] = &life{id: id, page: t.incarnation, view: v, since: t.check, n: t.last[id]}
		t.lives = append(t.lives, t.docs[id])
	}
	return t.docs[id]
}

func (t *truth) add(s pipeline.Subscription, origin, incarnation, position string, f *flow.Followed) {
	pair := t.pairOf(s, f)
	before := t.expired[pair]
	if before == nil {
		before = t.stopped
	}
	t.stopped = nil
	delete(t.expired, pair)
	l := t.begin(s.View, position)
	r := &record{life: l, incarnation: incarnation, origin: origin, sub: s, from: l.n, until: flow.Forever, before: before, followed: f}
	t.w.incarnations[incarnation] = t.incarnation
	t.subs[pair] = r
	t.records = append(t.records, r)
}

// stop ends the record of a pair, which may be followed by another.
func (t *truth) stop(pair string) *record {
	r := t.subs[pair]
	r.until = r.life.n
	delete(t.subs, pair)
	return r
}

// withdraw says that nothing more may be delivered because of r and those before it, but
// for the sinks that keep returns true for.
func (r *record) withdraw(d *deeds, keep func(sink string) bool) {
	for ; r != nil; r = r.before {
		for _, sink := range r.sub.Sinks {
			if keep == nil || !keep(sink) {
				d.withdrawn[r.incarnation+" "+sink] = true
			}
		}
	}
}

func (t *truth) subscribe(c flow.SubscribeCommand, position string, d *deeds) {
	pair := t.pair(c.Subscription)
	if x := t.expired[pair]; t.subs[pair] != nil || x != nil && x.paused {
		t.w.stats.Refused++
		d.tell(pipeline.HealthRefused, "")
		return
	}
	t.add(c.Subscription, c.Origin, position, position, nil)
}

func (t *truth) cancel(c flow.CancelCommand, d *deeds) {
	found := false
	for pair, r := range t.subs {
		if r.sub.Client == c.Client && r.followed == nil {
			t.stop(pair).cancelled = true
			r.withdraw(d, nil)
			found = true
		}
	}
	for pair, r := range t.expired {
		if r.sub.Client == c.Client && r.followed == nil {
			delete(t.expired, pair)
			r.withdraw(d, nil)
			found = true
		}
	}
	if !found {
		d.tell(pipeline.HealthRefused, "")
	}
	t.tidy()
}

// tidy ends the documents that nobody watches, and with the last one the page. Those whose subscriptions
// are paused rest.
func (t *truth) tidy() {
	t.linksKnown = t.linksKnown && t.linking(true)
	for id, l := range t.docs {
		used := len(t.keep) > 0 && l.view.IsZero()
		for _, r := range t.subs {
			used = used || r.life == l
		}
		if !used {
			delete(t.docs, id)
			t.resting[id] = l
			l.rested, l.candidate, l.stood = true, "", 0
		}
	}
	for id, l := range t.resting {
		paused := false
		for _, r := range t.expired {
			paused = paused || r.paused && r.life == l
		}
		if !paused {
			t.last[id] = l.n
			delete(t.resting, id)
		}
	}
	switch {
	case len(t.docs) > 0:
	case len(t.resting) > 0:
		t.request, t.bare = nil, false // it is not looked at until a resume
	default:
		t.end()
	}
}

// apply makes the list of c all that its origin wants. What expired stays so, unless it is
// changed or resumed.
func (t *truth) apply(c flow.ApplyCommand, position string, d *deeds) {
	wanted := make(map[string]bool)
	for _, s := range c.Subscriptions {
		wanted[t.pair(s)] = true
		if r := t.subs[t.pair(s)]; r != nil && r.origin != c.Origin && c.Origin == "api" {
			return // refused: users do not take over what is another's
		}
	}
	for i, s := range c.Subscriptions {
		r, x := t.subs[t.pair(s)], t.expired[t.pair(s)]
		switch {
		case r != nil && r.origin == "api" && c.Origin != "api": // it was made at run time
		case x != nil && x.paused && x.origin == "api" && c.Origin != "api":
		case r != nil && r.origin == c.Origin && equal(r.sub, s):
		case r != nil:
			t.stopped = t.stop(t.pair(s))
			t.add(s, c.Origin, r.incarnation, position, nil)
		case x != nil && x.origin == c.Origin && equal(x.sub, s) && !c.Resume:
		case x != nil && x.origin == c.Origin && x.paused && !c.Resume: // it resumes with the new settings
			changed := *x
			changed.sub, changed.before = s, x
			t.expired[t.pair(s)] = &changed
		default:
			t.add(s, c.Origin, fmt.Sprintf("%s/%d", position, i), position, nil)
		}
	}
	switch {
	case c.Keep && t.expiredKeep[c.Origin] && !c.Resume:
	case c.Keep:
		delete(t.expiredKeep, c.Origin)
		t.begin(pipeline.View{}, position)
		t.keep[c.Origin] = true
	case c.Client == "":
		delete(t.keep, c.Origin)
		delete(t.expiredKeep, c.Origin)
	}
	left := func(pair string, r *record) bool {
		return r.origin == c.Origin && !wanted[pair] && (c.Client == "" || r.sub.Client == c.Client)
	}
	for pair, r := range t.subs {
		if left(pair, r) {
			t.stop(pair).cancelled = true
			r.withdraw(d, nil)
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
			r.withdraw(d, func(sink string) bool { return stay[[2]string{r.sub.Client, sink}] })
		}
	}
	t.tidy()
}

func equal(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a.WithDefaults())
	y, errY := json.Marshal(b.WithDefaults())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// idle reports whether m is about a receiver that means nothing to the page: then it is as
// if it had not come.
func (t *truth) idle(m flow.Message, now time.Time) bool {
	idle := false
	switch m.Type {
	case flow.TypeFollow:
		_ = read(m, func(c flow.FollowCommand) { idle = t.follows(c) }) // command reads it again
	case flow.TypeResume:
		_ = read(m, func(c flow.ResumeCommand) { // command reads it again
			if c.Due {
				idle = true
				for _, r := range t.expired {
					idle = idle && (!r.paused || r.pausedUntil.IsZero())
				}
				return
			}
			idle = c.Receiver != "" && !t.unreachable[c.Receiver]
			for _, r := range t.expired {
				idle = idle && (!r.receiver || !slices.Contains(r.sub.Sinks, c.Receiver))
			}
		})
	case flow.TypeExpire:
		_ = read(m, func(c flow.ExpireCommand) {
			idle = true
			for _, r := range t.subs {
				elsewhere := !slices.Contains(r.sub.Sinks, c.Receiver)
				idle = idle && (elsewhere || t.unreachable[c.Receiver] && !t.lost(r))
			}
		})
	}
	return idle
}

// lost reports whether all receivers of r were given up.
func (t *truth) lost(r *record) bool {
	return !slices.ContainsFunc(r.sub.Sinks, func(sink string) bool { return !t.unreachable[sink] })
}

// pause ends the subscriptions of a client until they are resumed. Those that are paused already
// get the new end.
func (t *truth) pause(c flow.PauseCommand, d *deeds) {
	found := false
	for _, r := range t.expired {
		if r.sub.Client == c.Client && r.paused {
			r.pausedUntil = c.Until
			found = true
		}
	}
	for pair, r := range t.subs {
		if r.sub.Client == c.Client && r.followed == nil {
			t.stop(pair)
			r.paused, r.pausedUntil = true, c.Until
			t.expired[pair] = r
			t.w.stats.Pauses++
			found = true
		}
	}
	if !found {
		d.tell(pipeline.HealthRefused, "")
	}
	t.tidy()
}

// resume begins anew what expired or was paused: of a client, of all, because a receiver answers again,
// or what was paused until now.
func (t *truth) resume(c flow.ResumeCommand, position string, now time.Time, d *deeds) {
	resumed := false
	delete(t.unreachable, c.Receiver)
	var pairs []string
	for pair := range t.expired {
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs) // of document and client, as they are listed
	for i, pair := range pairs {
		r := t.expired[pair]
		if c.Client != "" && r.sub.Client != c.Client || c.Receiver != "" && (!r.receiver || !slices.Contains(r.sub.Sinks, c.Receiver)) ||
			c.Due && !r.over(now) {
			continue
		}
		if r.paused {
			t.w.stats.Resumed++
		}
		t.add(r.sub, r.origin, fmt.Sprintf("%s/%d", position, i), position, r.followed)
		resumed = true
	}
	if c.Client == "" && c.Receiver == "" && !c.Due {
		for origin := range t.expiredKeep {
			delete(t.expiredKeep, origin)
			t.begin(pipeline.View{}, position)
			t.keep[origin] = true
			resumed = true
		}
	}
	if !resumed && c.Receiver == "" && !c.Due {
		d.tell(pipeline.HealthRefused, "")
	}
}

// expireReceiver ends the subscriptions all of whose receivers were given up.
func (t *truth) expireReceiver(c flow.ExpireCommand) {
	for pair, r := range t.subs {
		if !slices.Contains(r.sub.Sinks, c.Receiver) {
			continue
		}
		t.unreachable[c.Receiver] = true
		if t.lost(r) {
			t.stop(pair)
			r.receiver = true
			t.expired[pair] = r
		}
	}
	t.tidy()
}
