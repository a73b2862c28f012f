package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// truth is what must have become of one page, by the documented rules, from the messages
// in the order in which index handled them.
type truth struct {
	w   *world
	url string

	incarnation string // of the page; empty for none
	keep        map[string]bool
	docs        map[string]*life // that are watched now
	subs        map[string]*record
	last        map[string]uint64 // by document: the last version in this life of the page

	request *pipeline.Request // that is outstanding
	asked   entry             // when it was made
	parts   map[int]bool
	check   uint64 // the last number
	bare    bool   // the next request may not carry a hash

	lives   []*life
	records []*record
}

// life is a document from its first subscription to its last cancel.
type life struct {
	id, page string // page: its incarnation
	view     pipeline.View
	since    uint64 // the last check asked for before it began
	n        uint64 // of the version that stands; before the first, of the last earlier life
	versions []version
	// candidate is a text that was seen stood times in a row and is no version yet.
	candidate string
	stood     int
}

type version struct {
	n        uint64
	text     rendering
	language string
	snapshot pipeline.Snapshot
}

// record is a subscription with the same options throughout: it hears version n if
// from < n <= until.
type record struct {
	life        *life
	incarnation string
	origin      string
	sub         pipeline.Subscription
	from, until uint64
}

// truthOf goes through what index committed about a page. It fails where index did what
// it must not.
func (w *world) truthOf(url string) (*truth, error) {
	t := &truth{w: w, url: url}
	t.end()
	for _, e := range w.history[url] {
		if err := t.entry(e); err != nil {
			return t, fmt.Errorf("%s: step %d: %s: %w", url, e.step, e.message.Type, err)
		}
	}
	return t, nil
}

// end forgets all: nobody watches the page.
func (t *truth) end() {
	t.incarnation, t.request, t.check, t.bare = "", nil, 0, false
	t.keep, t.docs = make(map[string]bool), make(map[string]*life)
	t.subs, t.last = make(map[string]*record), make(map[string]uint64)
}

func (t *truth) entry(e entry) error {
	var versions int
	m := e.message
	if m.Type != pipeline.TypeOutcome && t.request != nil && (t.crashedSince(e) || !e.now.Before(t.request.NotAfter.Add(patience))) {
		t.request = nil // what is left of it is given up
	}
	switch m.Type {
	case pipeline.TypeSubscribe:
		var c pipeline.SubscribeCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return err
		}
		if t.subs[t.pair(c.Subscription)] == nil {
			t.add(c.Subscription, c.Origin, m.Position, m.Position)
		}
	case pipeline.TypeCancel:
		var c pipeline.CancelCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return err
		}
		for pair, r := range t.subs {
			if r.sub.Client == c.Client {
				t.stop(pair)
			}
		}
		t.tidy()
	case pipeline.TypeApply:
		var c pipeline.ApplyCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return err
		}
		t.apply(c, m.Position)
	case pipeline.TypeOutcome:
		var err error
		if versions, err = t.outcome(e); err != nil {
			return err
		}
	}
	if len(e.snapshots) != versions {
		return fmt.Errorf("%d new versions were told, want %d", len(e.snapshots), versions)
	}
	return t.requests(e)
}

// pair names a subscription: one of a client and a document.
func (t *truth) pair(s pipeline.Subscription) string {
	return pipeline.DocumentID(t.url, s.View) + " " + s.Client
}

// begin returns the document of a view, which begins if it is new.
func (t *truth) begin(v pipeline.View, position string) *life {
	if t.incarnation == "" {
		t.incarnation = position
		t.w.stats.Pages++
	}
	id := pipeline.DocumentID(t.url, v)
	if t.docs[id] == nil {
		t.docs[id] = &life{id: id, page: t.incarnation, view: v, since: t.check, n: t.last[id]}
		t.lives = append(t.lives, t.docs[id])
	}
	return t.docs[id]
}

func (t *truth) add(s pipeline.Subscription, origin, incarnation, position string) {
	l := t.begin(s.View, position)
	r := &record{life: l, incarnation: incarnation, origin: origin, sub: s, from: l.n, until: pipeline.Forever}
	t.w.incarnations[incarnation] = t.incarnation
	t.subs[t.pair(s)] = r
	t.records = append(t.records, r)
}

func (t *truth) stop(pair string) {
	r := t.subs[pair]
	r.until = r.life.n
	delete(t.subs, pair)
}

// tidy ends the documents that nobody watches, and with the last one the page.
func (t *truth) tidy() {
	for id, l := range t.docs {
		used := len(t.keep) > 0 && l.view.IsZero()
		for _, r := range t.subs {
			used = used || r.life == l
		}
		if !used {
			t.last[id] = l.n
			delete(t.docs, id)
		}
	}
	if len(t.docs) == 0 {
		t.end()
	}
}

// apply makes the list of c all that its origin wants.
func (t *truth) apply(c pipeline.ApplyCommand, position string) {
	wanted := make(map[string]bool)
	for _, s := range c.Subscriptions {
		wanted[t.pair(s)] = true
		if r := t.subs[t.pair(s)]; r != nil && r.origin != c.Origin && c.Origin == "api" {
			return // refused: users do not take over what is another's
		}
	}
	for i, s := range c.Subscriptions {
		switch r := t.subs[t.pair(s)]; {
		case r == nil:
			t.add(s, c.Origin, fmt.Sprintf("%s/%d", position, i), position)
		case r.origin != c.Origin || !equal(r.sub, s):
			t.stop(t.pair(s))
			t.add(s, c.Origin, r.incarnation, position)
		}
	}
	switch {
	case c.Keep:
		t.begin(pipeline.View{}, position)
		t.keep[c.Origin] = true
	case c.Client == "":
		delete(t.keep, c.Origin)
	}
	for pair, r := range t.subs {
		if r.origin == c.Origin && !wanted[pair] && (c.Client == "" || r.sub.Client == c.Client) {
			t.stop(pair)
		}
	}
	t.tidy()
}

func equal(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a.WithDefaults())
	y, errY := json.Marshal(b.WithDefaults())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// outcome takes what a check found if it is the outstanding one, and returns how many
// versions it makes.
func (t *truth) outcome(e entry) (int, error) {
	o, err := pipeline.OutcomeFrom(e.message)
	if err != nil {
		return 0, err
	}
	if t.request == nil || o.Incarnation != t.incarnation || o.Check != t.request.Check {
		return 0, nil
	}
	var seen observation
	if at, err := strconv.Atoi(e.message.Header[headerSeen]); err == nil {
		seen = t.w.seen[at]
	}
	if o.Parts == 0 {
		if len(t.parts) > 0 {
			return 0, nil // a second answer to the same check
		}
		t.request = nil
		if o.Kind == pipeline.OutcomeUnchanged {
			t.unchanged(seen)
		}
		return 0, nil
	}
	if t.parts[o.Part] {
		return 0, nil
	}
	t.parts[o.Part] = true
	if len(t.parts) == o.Parts {
		t.request = nil
	}
	l := t.docs[o.Document]
	if l == nil || o.Check <= l.since || !seen.ok {
		return 0, nil
	}
	if o.Kind == pipeline.OutcomeUnchanged {
		if len(l.versions) == 0 || l.versions[len(l.versions)-1].text.visible() != seen.text.visible() {
			t.bare = true // it compared with what does not stand
			return 0, nil
		}
	}
	return t.saw(l, seen.text, e)
}

// unchanged is an accepted check that says that nothing changed. Where it is wrong, because
// it compared with what does not stand, the page must be looked at again.
func (t *truth) unchanged(seen observation) {
	for id, l := range t.docs {
		text, ok := seen.texts[id]
		switch {
		case !ok || len(l.versions) == 0 || l.candidate != "":
			t.bare = true
		case text.visible() != l.versions[len(l.versions)-1].text.visible():
			t.bare = true
		}
	}
}

// saw is a text of l that an accepted check saw.
func (t *truth) saw(l *life, text rendering, e entry) (int, error) {
	look := text.visible()
	if len(l.versions) > 0 {
		if look == l.versions[len(l.versions)-1].text.visible() {
			l.candidate, l.stood = "", 0
			return 0, nil
		}
		if look != l.candidate {
			l.candidate, l.stood = look, 0
		}
		if l.stood++; l.stood < l.view.Confirm {
			return 0, nil
		}
	}
	l.candidate, l.stood = "", 0
	if len(e.snapshots) == 0 {
		return 1, nil
	}
	return 1, t.told(l, text, e.snapshots[0])
}

// told holds the version that index told against the one that must be.
func (t *truth) told(l *life, text rendering, s pipeline.Snapshot) error {
	previous, old := uint64(0), ""
	if len(l.versions) > 0 {
		previous, old = l.n, l.versions[len(l.versions)-1].text.content
	}
	switch {
	case s.Page != t.url || s.Incarnation != t.incarnation || s.Document != l.id:
		return fmt.Errorf("version %d of %s %s %s, want of %s %s %s", s.N, s.Page, s.Incarnation, s.Document, t.url, t.incarnation, l.id)
	case previous > 0 && s.N != l.n+1 || s.N <= l.n:
		return fmt.Errorf("document %s: version %d after %d", l.id, s.N, l.n)
	case s.Previous != previous:
		return fmt.Errorf("document %s: version %d comes after %d, want %d", l.id, s.N, s.Previous, previous)
	case s.Old != old || s.New != text.content:
		return fmt.Errorf("document %s: version %d has texts %q and %q, want %q and %q", l.id, s.N, s.Old, s.New, old, text.content)
	}
	if previous == 0 {
		for _, r := range t.subs { // what was before is of another life
			if r.life == l {
				r.from = s.N - 1
			}
		}
	}
	l.n = s.N
	l.versions = append(l.versions, version{s.N, text, s.Language, s})
	t.w.stats.Versions++
	return nil
}

// requests takes the requests that index made: one at a time, with rising numbers.
func (t *truth) requests(e entry) error {
	for _, r := range e.requests {
		switch {
		case r.Incarnation != t.incarnation:
			return fmt.Errorf("a request of incarnation %s, want %s", r.Incarnation, t.incarnation)
		case r.Check <= t.check:
			return fmt.Errorf("check %d after %d", r.Check, t.check)
		case t.request != nil:
			return fmt.Errorf("check %d while %d is outstanding", r.Check, t.request.Check)
		case t.bare && (r.BodyHash != "" || r.ETag != ""):
			return fmt.Errorf("check %d carries a hash though what stands is not known", r.Check)
		case len(r.Documents) != len(t.docs):
			return fmt.Errorf("check %d asks for %d documents, want %d", r.Check, len(r.Documents), len(t.docs))
		case r.NotAfter.Before(e.now):
			return fmt.Errorf("check %d is too late from the beginning", r.Check)
		}
		for _, d := range r.Documents {
			if t.docs[d.ID] == nil {
				return fmt.Errorf("check %d asks for %s, which nobody watches", r.Check, d.ID)
			}
		}
		t.request, t.asked, t.check, t.parts, t.bare = &r, e, r.Check, make(map[int]bool), false
	}
	return nil
}

// crashedSince reports whether the process that made the request was gone before e.
func (t *truth) crashedSince(e entry) bool {
	return slices.ContainsFunc(t.w.crashes, func(step int) bool { return step >= t.asked.step && step < e.step })
}

// patience is how long index waits for an outcome after the time by which the fetch must
// have begun: as long as a fetch may last, and some more.
const patience = time.Minute

// final checks that each document ends with what its page shows, and that nothing is left
// of a page that nobody watches.
func (t *truth) final() error {
	s := t.w.site(t.url)
	if t.incarnation != "" && s.calm < checksWhenCalm {
		return fmt.Errorf("%s was looked at %d times since all is calm", t.url, s.calm)
	}
	for _, group := range []string{pipeline.GroupIndex, pipeline.GroupDiff, pipeline.GroupMatch} {
		if n := len(t.w.t.state[group+"\x00"+t.url]); n > 0 && t.incarnation == "" {
			return fmt.Errorf("%s is watched by nobody, but %s keeps %d values", t.url, group, n)
		}
	}
	for _, l := range t.docs {
		text, ok := s.body.render(l.view)
		if !ok {
			continue
		}
		if len(l.versions) == 0 {
			return fmt.Errorf("%s: document %s has no version at %s", t.url, l.id, t.w.now.Format(time.DateTime))
		}
		if got := l.versions[len(l.versions)-1].text.visible(); got != text.visible() {
			return fmt.Errorf("%s: document %s ends with %q, but shows %q", t.url, l.id, got, text.visible())
		}
	}
	return nil
}
