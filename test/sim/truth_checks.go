package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Rules of behaviour.md about pages that fail.
const (
	failingAfter = 3   // counted failures in a row until the page is called failing
	busyChecks   = 100 // checks in a row that may find a busy host before they count
)

// outcome takes what a check found if it is the outstanding one.
func (t *truth) outcome(e entry, d *deeds) error {
	o, err := flow.OutcomeFrom(e.message)
	if err != nil {
		return err
	}
	if t.request == nil || o.Incarnation != t.incarnation || o.Check != t.request.Check || o.Nonce != t.request.Nonce {
		return nil
	}
	if o.Parts == 0 && len(t.parts) > 0 || t.parts[o.Part] {
		return nil // a second answer to the same check
	}
	t.clamp(e.now)
	var seen observation
	if at, err := strconv.Atoi(e.message.Header[headerSeen]); err == nil {
		seen = t.w.seen[at]
	}
	if o.Parts == 0 {
		t.request = nil
		if o.Kind == flow.OutcomeUnchanged {
			if t.linking(false) && !t.linksKnown {
				t.bare = true // its links are asked for
				return nil
			}
			for _, l := range t.docs {
				if err := l.look(seen); err != nil {
					return err
				}
			}
			t.unchanged(seen)
			t.reached(d)
			return nil
		}
		t.failed(o, d)
		return nil
	}
	t.parts[o.Part] = true
	complete := len(t.parts) == o.Parts
	if complete {
		t.request = nil
	}
	if err := t.part(o, seen, e, d); err != nil {
		return err
	}
	t.linksKnown = t.linksKnown || o.Links != nil && t.linking(true) && !t.wall
	if complete {
		t.reached(d) // where no selector matches, too
	}
	return nil
}

// part takes what a check found of one document.
func (t *truth) part(o flow.Outcome, seen observation, e entry, d *deeds) error {
	l := t.docs[o.Document]
	if l == nil || o.Check <= l.since {
		return nil
	}
	if err := l.look(seen); err != nil {
		return err
	}
	switch {
	case !seen.ok:
		if !l.gone {
			l.gone = true
			t.tell(d, pipeline.HealthSelectorGone, l.id)
		}
		return nil
	case t.replaced(l, seen.text):
		t.wall = true
		t.w.stats.Replaced++
		if !l.gone {
			l.gone = true
			t.tell(d, pipeline.HealthPageReplaced, l.id)
		}
		return nil
	case o.Kind == flow.OutcomeUnchanged && (len(l.versions) == 0 || l.versions[len(l.versions)-1].text.visible() != seen.text.visible()):
		t.bare = true // it compared with what does not stand
		return nil
	case l.gone:
		l.gone = false
		t.tell(d, pipeline.HealthRecovered, l.id)
	}
	var err error
	d.versions, err = t.saw(l, seen.text, e)
	return err
}

// look takes that an accepted check looked at l: after the one before, or what it saw would
// undo what is newer.
func (l *life) look(seen observation) error {
	if seen.step < l.looked {
		return fmt.Errorf("document %s: an observation of step %d is accepted after one of step %d", l.id, seen.step, l.looked)
	}
	l.looked = seen.step
	return nil
}

// unchanged is an accepted check that says that nothing changed. Where it is wrong, because
// it compared with what does not stand, the page must be looked at again.
func (t *truth) unchanged(seen observation) {
	for id, l := range t.docs {
		text, ok := seen.texts[id]
		switch {
		case !ok || len(l.versions) == 0 || l.candidate != "":
			t.bare = true
		case text.visible() != l.versions[len(l.versions)-1].text.visible() && !l.settled(text):
			t.bare = true
		}
	}
}

// reached is a check that got to the page.
func (t *truth) reached(d *deeds) {
	if t.failing {
		t.tell(d, pipeline.HealthRecovered, "")
	}
	t.failures, t.busy, t.failing = 0, 0, false
}

// tell says that a health event of the page must be published, unless the page is only linked to and
// was never read.
func (t *truth) tell(d *deeds, event pipeline.HealthEvent, document string, sinks ...string) {
	if !t.silent() {
		d.tell(event, document, sinks...)
	}
}

// failed is a check that did not get to the page.
func (t *truth) failed(o flow.Outcome, d *deeds) {
	switch {
	case o.Offline:
		return
	case o.Class != pipeline.FailBusy:
		t.busy = 0
	case t.busy < busyChecks:
		t.busy++
		return
	}
	t.failures++
	switch {
	case t.w.expireAfter > 0 && t.failures >= t.w.expireAfter:
		named := make(map[string]bool)
		for _, r := range t.subs {
			for _, sink := range r.sub.Sinks {
				named[sink] = true
			}
		}
		t.tell(d, pipeline.HealthExpired, "", slices.Sorted(maps.Keys(named))...)
		d.expired = true
		t.expire(o.Time)
	case t.failures >= failingAfter && !t.failing && !t.silent():
		t.failing = true
		d.tell(pipeline.HealthFailing, "")
	}
}

// expire gives the page up: each client is told once at each of its receivers, in the name
// of the first of its subscriptions that name that receiver.
func (t *truth) expire(at time.Time) {
	t.w.stats.Expiries++
	clients := make(map[string]*timeout)
	for pair, r := range t.subs {
		t.stop(pair)
		t.expired[pair] = r
		if r.followed != nil && r.until == 0 {
			continue // it was never read, which is no news
		}
		o := clients[r.sub.Client]
		if o == nil {
			o = &timeout{page: t.incarnation, client: r.sub.Client, at: at, sinks: make(map[string]*record)}
			clients[r.sub.Client] = o
			t.timeouts = append(t.timeouts, o)
		}
		for _, sink := range r.sub.Sinks {
			if first := o.sinks[sink]; first == nil || r.incarnation < first.incarnation {
				o.sinks[sink] = r
			}
		}
	}
	for origin := range t.keep {
		t.expiredKeep[origin] = true
	}
	t.end()
}

// requests takes the requests that index made: one at a time, with rising numbers.
func (t *truth) requests(e entry) error {
	for _, r := range e.requests {
		switch {
		case r.Incarnation != t.incarnation || t.incarnation == "":
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
		t.request, t.asked, t.check, t.parts, t.bare, t.wall = &r, e, r.Check, make(map[int]bool), false, false
		t.askedAt, t.deadline = e.now, e.now.Add(patience)
	}
	return nil
}

// clamp moves the time of the outstanding request along with a clock that was set back.
func (t *truth) clamp(now time.Time) {
	if back := t.askedAt.Sub(now); back > 0 {
		t.askedAt, t.deadline = now, t.deadline.Add(-back)
	}
	if latest := now.Add(patience); t.deadline.After(latest) {
		t.deadline = latest
	}
}

// givenUp reports whether the outstanding request is given up by the wake e: it must be at
// its deadline, and where the process that made it is gone. A process that had its lane
// before, and has it again, cannot always tell; nor can one that dropped a later request before the
// transaction of this one was committed.
func (t *truth) givenUp(e entry) bool {
	if !e.now.Before(t.deadline) {
		return true
	}
	if !t.w.kafka() {
		return e.tenure != t.asked.tenure
	}
	return (e.tenure != t.asked.tenure || e.dropped) && e.waits != t.request.Check
}

// patience is how long index waits for an outcome: until the fetch must have begun, as long
// as it may last, and some more.
const patience = 3 * time.Minute

// final checks that each document ends with what its page shows, and that nothing is left
// of a page that nobody watches.
func (t *truth) final() error {
	s := t.w.site(t.url)
	if len(t.docs) > 0 && s.looked() < checksWhenCalm {
		return fmt.Errorf("%s was looked at %d times since all is calm", t.url, s.looked())
	}
	for _, group := range []string{flow.GroupIndex, flow.GroupDiff, flow.GroupMatch} {
		if n := len(t.w.holder(t.url).state[engine.Place{Group: group, Key: t.url}]); n > 0 && t.over() {
			return fmt.Errorf("%s is watched by nobody, but %s keeps %d values", t.url, group, n)
		}
	}
	for pair, r := range t.expired {
		if r.over(t.w.now) {
			return fmt.Errorf("%s: subscription %s was paused until %s, and is paused at %s", t.url, pair, r.pausedUntil.Format(time.DateTime), t.w.now.Format(time.DateTime))
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
		if got := l.versions[len(l.versions)-1].text.visible(); got != text.visible() && !l.settled(text) {
			return fmt.Errorf("%s: document %s ends with %q, but shows %q", t.url, l.id, got, text.visible())
		}
	}
	return nil
}
