package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
)

// subscribe adds one subscription.
func (a *application) subscribe(s Subscribe) {
	if s.Existing != nil {
		a.emit(Decide{conflict(s.Subscription)})
		return
	}
	a.live()
	a.add(s.Subscription, s.Origin, a.Position)
	a.emit(Decide{})
}

// replace makes the subscriptions of an origin those of a list.
func (a *application) replace(r Replace) {
	existing := make(map[string]pipeline.Stamped, len(r.Existing))
	for _, e := range r.Existing {
		existing[subscriptionName(e.Document, e.Subscription.Client)] = e
	}
	wanted := make(map[string]bool, len(r.Subscriptions))
	for _, s := range r.Subscriptions {
		name := a.name(s)
		wanted[name] = true
		if e, ok := existing[name]; ok && e.Origin != r.Origin && !takesOver(r.Origin) {
			a.emit(Decide{conflict(s)})
			return
		}
	}
	for i, s := range r.Subscriptions {
		a.live()
		e, ok := existing[a.name(s)]
		switch {
		case !ok:
			// Entries of one command share its position.
			a.add(s, r.Origin, fmt.Sprintf("%s/%d", a.Position, i))
		case e.Origin != r.Origin || !same(e.Subscription, s):
			a.end(e)
			a.add(s, r.Origin, e.Incarnation)
		}
	}
	if r.Keep {
		a.keep(r.Origin)
	} else if r.Client == "" {
		a.p.Keep = slices.DeleteFunc(a.p.Keep, func(o string) bool { return o == r.Origin })
	}
	for _, e := range r.Existing {
		if e.Origin == r.Origin && !wanted[subscriptionName(e.Document, e.Subscription.Client)] {
			a.end(e)
		}
	}
	a.tidy()
	a.emit(Decide{})
}

// takesOver reports whether what origin lists replaces what others made: the word of
// whoever runs the program does, that of its users does not.
func takesOver(origin string) bool { return origin != pipeline.OriginAPI }

// keep makes the page live without subscriptions, with its whole-page document.
func (a *application) keep(origin string) {
	a.live()
	if !slices.Contains(a.p.Keep, origin) {
		a.p.Keep = append(a.p.Keep, origin)
		slices.Sort(a.p.Keep)
	}
	a.p.begin(pipeline.View{})
}

// live begins a life of the page if there is none.
func (a *application) live() {
	if !a.exists() {
		a.p = Page{URL: a.URL, Incarnation: a.Position, Due: a.Now}
	}
}

// name is the name of the state of s.
func (a *application) name(s pipeline.Subscription) string {
	return subscriptionName(pipeline.DocumentID(a.URL, s.View), s.Client)
}

// cancel ends a client's subscriptions.
func (a *application) cancel(c Cancel) {
	if !a.exists() || len(c.Existing) == 0 {
		a.emit(Decide{&Refusal{CodeNotFound, fmt.Sprintf("client %q has no subscription to this page", c.Client)}})
		return
	}
	for _, e := range c.Existing {
		a.end(e)
	}
	a.tidy()
	a.emit(Decide{})
}

// add begins a record for s.
func (a *application) add(s pipeline.Subscription, origin, incarnation string) {
	p := &a.p
	d := p.begin(s.View)
	d.Subscriptions++
	p.count(s.Interval, 1)
	p.Stamp++
	a.emit(Stamp{pipeline.Stamped{
		Page: p.URL, PageIncarnation: p.Incarnation, Document: d.ID, Incarnation: incarnation,
		Stamp: p.Stamp, Since: p.Stamp, From: d.N, Until: pipeline.Forever,
		Origin: origin, Subscription: s,
	}})
}

// end ends the record e.
func (a *application) end(e pipeline.Stamped) {
	p := &a.p
	d := p.Document(e.Document)
	d.Subscriptions--
	p.count(e.Subscription.Interval, -1)
	p.Stamp++
	e.Stamp, e.Until = p.Stamp, d.N
	a.emit(Stamp{e})
}

// tidy drops the documents that nobody watches any more, and with the last one the page.
func (a *application) tidy() {
	p := &a.p
	if !a.exists() {
		return
	}
	for _, d := range slices.Clone(p.Documents) {
		if d.Subscriptions == 0 && !p.keeps(&d) {
			p.drop(d.ID)
			a.emit(DropDocument{d.ID})
		}
	}
	if len(p.Documents) == 0 {
		a.emit(Ended{p.Incarnation, p.Stamp})
		a.p = Page{}
	}
}

// same reports whether two subscriptions ask for the same.
func same(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
