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

// applyOutcome applies what a check found, if it is the outstanding one.
func (t *pageModel) applyOutcome(e indexEntry, d *expectedEffects) error {
	o, err := flow.OutcomeFrom(e.message)
	if err != nil {
		return err
	}
	if t.openRequest == nil || o.Incarnation != t.incarnation || o.Check != t.openRequest.Check || o.Nonce != t.openRequest.Nonce {
		return nil
	}
	if o.Parts == 0 && len(t.answeredParts) > 0 || t.answeredParts[o.Part] {
		return nil // a second answer to the same check
	}
	t.clampTimes(e.now)
	var seen observation
	if at, err := strconv.Atoi(e.message.Header[headerObservation]); err == nil {
		seen = t.world.observations[at]
	}
	if o.Parts == 0 {
		t.openRequest = nil
		if o.Kind == flow.OutcomeUnchanged {
			if t.wantsLinks(false) && !t.linksKnown {
				t.mustOmitHashes = true // its links are asked for
				return nil
			}
			for _, l := range t.documents {
				if err := l.noteLook(seen); err != nil {
					return err
				}
			}
			t.applyUnchanged(seen)
			t.noteReached(o.Time, d)()
			return nil
		}
		t.applyFailure(o, d)
		return nil
	}
	t.answeredParts[o.Part] = true
	complete := len(t.answeredParts) == o.Parts
	if complete {
		t.openRequest = nil
	}
	sayReached := t.noteReached(o.Time, d) // where no selector matches, too
	if err := t.applyPart(o, seen, e, d); err != nil {
		return err
	}
	sayReached()
	t.linksKnown = t.linksKnown || o.Links != nil && t.wantsLinks(true) && !t.foundReplaced
	return nil
}

// applyPart applies what a check found of one document.
func (t *pageModel) applyPart(o flow.Outcome, seen observation, e indexEntry, d *expectedEffects) error {
	l := t.documents[o.Document]
	if l == nil || o.Check <= l.beganAfterCheck {
		return nil
	}
	if err := l.noteLook(seen); err != nil {
		return err
	}
	switch {
	case !seen.ok:
		if !l.toldGone {
			l.toldGone = true
			t.expectHealth(d, pipeline.HealthSelectorGone, l.id)
		}
		return nil
	case t.isReplaced(l, seen.text):
		t.foundReplaced = true
		t.world.stats.ReplacedPages++
		if !l.toldGone {
			l.toldGone = true
			t.expectHealth(d, pipeline.HealthPageReplaced, l.id)
		}
		return nil
	case o.Kind == flow.OutcomeUnchanged && (len(l.versions) == 0 ||
		l.versions[len(l.versions)-1].text.visibleText() != seen.text.visibleText()):
		t.mustOmitHashes = true // it compared with what does not stand
		return nil
	case l.toldGone:
		l.toldGone = false
		t.expectHealth(d, pipeline.HealthRecovered, l.id)
	}
	var err error
	d.versions, err = t.applyText(l, seen.text, e)
	return err
}

// noteLook records that an accepted check looked at l. It must have looked after the one before, or what it saw
// would undo what is newer.
func (l *documentLife) noteLook(seen observation) error {
	if seen.step < l.lastLookStep {
		return fmt.Errorf("document %s: an observation of step %d is accepted after one of step %d", l.id, seen.step, l.lastLookStep)
	}
	l.lastLookStep = seen.step
	return nil
}

// applyUnchanged applies an accepted check that found nothing changed. Where that is wrong, because
// it compared with an older text, the page must be looked at again.
func (t *pageModel) applyUnchanged(seen observation) {
	for id, l := range t.documents {
		text, ok := seen.texts[id]
		switch {
		case !ok || len(l.versions) == 0 || l.candidate != "":
			t.mustOmitHashes = true
		case text.visibleText() != l.versions[len(l.versions)-1].text.visibleText() && !l.isIgnored(text):
			t.mustOmitHashes = true
		}
	}
}

// noteReached records a check that got to the page: who was told that it fails is told that it answers again. The
// health event is expected before all others once what it returns is called, after what was read has been applied.
func (t *pageModel) noteReached(now time.Time, d *expectedEffects) (sayReached func()) {
	if t.failureRun == 0 { // it answered while clients paused, who count from when they were told
		t.firstFailure = time.Time{}
		for _, r := range t.subscriptions {
			if !r.told.IsZero() && (t.firstFailure.IsZero() || r.told.Before(t.firstFailure)) {
				t.firstFailure = r.told
			}
		}
	}
	n := t.newNotices(now)
	for _, r := range t.subscriptions {
		if !r.told.IsZero() {
			n.add(r, pipeline.StatusRecovered)
			r.told = time.Time{}
		}
	}
	if len(n.sinks) > 0 {
		d.outages = 1
	}
	wasSaid := t.toldFailing || !t.dormantSince.IsZero()
	t.failureRun, t.busyRun, t.toldFailing, t.dormantSince = 0, 0, false, time.Time{}
	return func() {
		later := d.health
		d.health = nil
		if wasSaid {
			t.expectHealth(d, pipeline.HealthRecovered, "", slices.Sorted(maps.Keys(n.sinks))...)
		}
		d.health = append(d.health, later...)
	}
}

// expectHealth says that a health event of the page must be published, unless the page is only linked to and
// was never read.
func (t *pageModel) expectHealth(d *expectedEffects, event pipeline.HealthEvent, document string, sinks ...string) {
	if !t.hidesFailures() {
		d.expectHealth(event, document, sinks...)
	}
}

// applyFailure applies a check that did not get to the page.
func (t *pageModel) applyFailure(o flow.Outcome, d *expectedEffects) {
	switch {
	case o.Offline:
		return
	case o.Class != pipeline.FailBusy:
		t.busyRun = 0
	case t.busyRun < busyChecks:
		t.busyRun++
		return
	}
	if t.failureRun++; t.failureRun == 1 {
		t.firstFailure = o.Time
	}
	if !t.giveUp(o.Time, d) && t.failureRun >= failingAfter && !t.toldFailing && !t.hidesFailures() {
		if t.toldFailing = true; t.dormantSince.IsZero() {
			d.expectHealth(pipeline.HealthFailing, "")
		}
	}
}

// giveUp tells each client whose subscription waited long enough for the page: that it fails, or that it is given up.
// It reports whether the page ended. All of it is documented under expire in docs/configuration.md.
func (t *pageModel) giveUp(now time.Time, d *expectedEffects) (ended bool) {
	n := t.newNotices(now)
	patient := len(t.keep) > 0 && (t.world.expireAfter < 0 || t.failureRun < t.world.expireAfter)
	for pair, r := range t.subscriptions {
		after, retry := t.world.expireAfter, t.world.expireRetry
		if r.sub.Expire.After != 0 {
			after = r.sub.Expire.After
		}
		if r.sub.Expire.Retry != 0 {
			retry = r.sub.Expire.Retry
		}
		switch {
		case after < 0 || t.failureRun < after && r.told.IsZero():
			patient = true
		case r.told.IsZero() && retry < 0:
			n.end(pair, pipeline.StatusTimeout)
		case r.told.IsZero():
			t.world.stats.DormantSubscriptions++
			r.told = now
			n.add(r, pipeline.StatusTimeout)
		case retry < 0 || now.Sub(r.told) >= retry:
			n.end(pair, pipeline.StatusExpired)
		}
	}
	fellAsleep := !patient && t.dormantSince.IsZero()
	if fellAsleep {
		t.dormantSince = now
	}
	kept := len(t.keep) > 0 && (patient || t.world.expireRetry > 0 && now.Sub(t.dormantSince) < t.world.expireRetry)
	if len(n.sinks) > 0 {
		d.outages = 1
	}
	if len(t.subscriptions) == 0 && !kept {
		t.expectHealth(d, pipeline.HealthExpired, "", slices.Sorted(maps.Keys(n.sinks))...)
		t.world.stats.ExpiredPages++
		for origin := range t.keep {
			t.expiredKeep[origin] = true
		}
		t.endIncarnation()
		return true
	}
	if fellAsleep {
		t.expectHealth(d, pipeline.HealthDormant, "", slices.Sorted(maps.Keys(n.sinks))...)
	}
	t.dropUnwatched()
	return false
}

// notices collects what clients are told of one check.
type notices struct {
	t     *pageModel
	now   time.Time
	by    map[[2]string]*outageNotice // status and client
	sinks map[string]bool
}

func (t *pageModel) newNotices(now time.Time) *notices {
	return &notices{t, now, make(map[[2]string]*outageNotice), make(map[string]bool)}
}

// add tells the client of r, once at each of its receivers, in the name of the first of its subscriptions that name
// that receiver.
func (n *notices) add(r *subscriptionSpan, status string) {
	if r.followed != nil && r.life.version == 0 {
		return // it was never read, which is no news
	}
	o := n.by[[2]string{status, r.sub.Client}]
	if o == nil {
		o = &outageNotice{status: status, client: r.sub.Client, at: n.now, since: n.t.firstFailure, sinks: make(map[string]*subscriptionSpan)}
		n.by[[2]string{status, r.sub.Client}] = o
		n.t.outages = append(n.t.outages, o)
	}
	for _, sink := range r.sub.Sinks {
		n.sinks[sink] = true
		if first := o.sinks[sink]; first == nil || r.incarnation < first.incarnation {
			o.sinks[sink] = r
		}
	}
}

// end ends a subscription, of which its client is told.
func (n *notices) end(pair, status string) {
	r := n.t.stopSpan(pair)
	n.t.expired[pair] = r
	n.add(r, status)
}

// verifyRequests checks the requests that index made: one at a time, with rising numbers.
func (t *pageModel) verifyRequests(e indexEntry) error {
	for _, r := range e.requests {
		switch {
		case r.Incarnation != t.incarnation || t.incarnation == "":
			return fmt.Errorf("a request of incarnation %s, want %s", r.Incarnation, t.incarnation)
		case r.Check <= t.lastCheck:
			return fmt.Errorf("check %d after %d", r.Check, t.lastCheck)
		case t.openRequest != nil:
			return fmt.Errorf("check %d while %d is outstanding", r.Check, t.openRequest.Check)
		case t.mustOmitHashes && (r.BodyHash != "" || r.ETag != ""):
			return fmt.Errorf("check %d carries a hash though what stands is not known", r.Check)
		case len(r.Documents) != len(t.documents):
			return fmt.Errorf("check %d asks for %d documents, want %d", r.Check, len(r.Documents), len(t.documents))
		case r.NotAfter.Before(e.now):
			return fmt.Errorf("check %d is too late from the beginning", r.Check)
		}
		for _, d := range r.Documents {
			if t.documents[d.ID] == nil {
				return fmt.Errorf("check %d asks for %s, which nobody watches", r.Check, d.ID)
			}
		}
		t.openRequest, t.requestEntry, t.lastCheck, t.answeredParts, t.mustOmitHashes, t.foundReplaced = &r, e, r.Check, make(map[int]bool), false, false
		t.requestedAt, t.deadline = e.now, e.now.Add(outcomeTimeout)
	}
	return nil
}

// clampTimes moves the time of the outstanding request along with a clock that was set back.
func (t *pageModel) clampTimes(now time.Time) {
	if back := t.requestedAt.Sub(now); back > 0 {
		t.requestedAt, t.deadline = now, t.deadline.Add(-back)
	}
	if latest := now.Add(outcomeTimeout); t.deadline.After(latest) {
		t.deadline = latest
	}
}

// isRequestGivenUp reports whether index gives up the outstanding request at the wake e: it must be at
// its deadline, and where the process that made it is gone. A process that had its lane
// before, and has it again, cannot always tell; nor can one that dropped a later request before the
// transaction of this one was committed.
func (t *pageModel) isRequestGivenUp(e indexEntry) bool {
	if !e.now.Before(t.deadline) {
		return true
	}
	if !t.world.usesKafka() {
		return e.tenure != t.requestEntry.tenure
	}
	return (e.tenure != t.requestEntry.tenure || e.droppedBefore) && e.openCheck != t.openRequest.Check
}

// outcomeTimeout is how long index waits for an outcome: until the fetch must have begun, as long
// as it may last, and some more.
const outcomeTimeout = 3 * time.Minute

// verifyFinal checks that each document ends with what its page shows, and that nothing is left
// of a page that nobody watches.
func (t *pageModel) verifyFinal() error {
	s := t.world.siteByURL(t.url)
	if len(t.documents) > 0 && s.answeredFinalChecks() < finalCheckCount {
		return fmt.Errorf("%s was looked at %d times since all is calm", t.url, s.answeredFinalChecks())
	}
	for _, group := range []string{flow.GroupIndex, flow.GroupDiff, flow.GroupMatch} {
		if n := len(t.world.ownedLane(t.url).state[engine.Place{Group: group, Key: t.url}]); n > 0 && t.isGone() {
			return fmt.Errorf("%s is watched by nobody, but %s keeps %d values", t.url, group, n)
		}
	}
	for pair, r := range t.expired {
		if r.pauseIsOver(t.world.now) {
			return fmt.Errorf("%s: subscription %s was paused until %s, and is paused at %s", t.url, pair, r.pausedUntil.Format(time.DateTime), t.world.now.Format(time.DateTime))
		}
	}
	for _, l := range t.documents {
		text, ok := s.current.render(l.view)
		if !ok {
			continue
		}
		if len(l.versions) == 0 {
			return fmt.Errorf("%s: document %s has no version at %s", t.url, l.id, t.world.now.Format(time.DateTime))
		}
		if got := l.versions[len(l.versions)-1].text.visibleText(); got != text.visibleText() && !l.isIgnored(text) {
			return fmt.Errorf("%s: document %s ends with %q, but shows %q", t.url, l.id, got, text.visibleText())
		}
	}
	return nil
}
