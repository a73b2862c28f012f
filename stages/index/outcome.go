package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// handleOutcome handles the outcome of a check and reports whether it counts. It does not if it is of
// another incarnation of the page, answers another request than the outstanding one, or is a
// part that arrived before.
func (a *applier) handleOutcome(o flow.Outcome) bool {
	open := a.p.Open
	if !a.exists() || open == nil || o.Incarnation != a.p.Incarnation || o.Check != a.p.Check || o.Nonce != open.Nonce {
		return false
	}
	if o.Parts == 0 {
		if open.Got != nil {
			return false // its parts have begun to arrive
		}
		return a.handlePageOutcome(o)
	}
	first := open.Got == nil
	if o.Parts != open.Parts || o.Part < 0 || o.Part >= o.Parts || !open.markArrived(o.Part) {
		return false
	}
	switch {
	case first:
		open.BodyHash = o.BodyHash
	case o.BodyHash != open.BodyHash:
		// Two processes fetched the page for this check, or one did so twice: neither body
		// contains all of the texts.
		open.Mixed, open.Partial = true, true
	}
	before := len(a.out)
	a.handlePart(o)
	if open.Reached {
		// Clients hear that the page is back, then what changed meanwhile.
		made := slices.Clone(a.out[before:])
		a.out = a.out[:before]
		a.noteAnswer(o, open)
		a.out = append(a.out, made...)
	}
	a.noteLinks(o)
	if open.allArrived() {
		a.finishParts(o)
	}
	return true
}

// markArrived marks part as arrived. It returns false if the part arrived before.
func (o *Open) markArrived(part int) bool {
	if o.Got == nil {
		o.Got = make([]byte, (o.Parts+7)/8)
	}
	bit := byte(1) << (part % 8)
	if o.Got[part/8]&bit != 0 {
		return false
	}
	o.Got[part/8] |= bit
	return true
}

func (o *Open) allArrived() bool {
	for i := range o.Parts {
		if o.Got[i/8]&(1<<(i%8)) == 0 {
			return false
		}
	}
	return true
}

// passedAtFirst returns what the reader passed over, if a document has its first version.
func (o *Open) passedAtFirst() []string {
	for _, n := range o.Made {
		if n == 1 {
			return o.Passed
		}
	}
	return nil
}

// noteFailure notes the first failure of a check.
func (o *Open) noteFailure(class, reason string) {
	o.Partial = true
	if o.Class == "" {
		o.Class, o.Reason = class, reason
	}
}

// handlePageOutcome handles an outcome about the page as a whole.
func (a *applier) handlePageOutcome(o flow.Outcome) bool {
	p, open := a.p, a.p.Open
	switch o.Kind {
	case flow.OutcomeUnchanged:
		if open.Bare {
			open.noteFailure(pipeline.FailUnreadable, "a fetch without hashes answered that nothing changed")
			break
		}
		if o.Against != p.BodyHash || !p.bodyStandsFor(o.Check) {
			// It was compared with a body that is not the current one: check again.
			p.Open, p.Soon, p.Bare = nil, true, true
			return true
		}
		open.Reached = true
	case flow.OutcomeFailed:
		open.noteFailure(failureOf(o))
		open.Reached = !a.countsForExpiry(open.Class)
	default:
		return false
	}
	a.closeCheck(o)
	return true
}

// handlePart handles an outcome about one document.
func (a *applier) handlePart(o flow.Outcome) {
	p, open := a.p, a.p.Open
	for _, s := range o.Passed {
		if !slices.Contains(open.Passed, s) {
			open.Passed = append(open.Passed, s)
		}
	}
	// Texts change one by one; until all have, no body hash stands for them.
	p.forgetBody()
	d := p.Document(o.Document)
	if d == nil || p.isResting(d) || o.Check > 0 && o.Check <= d.Since {
		open.Reached = true // it was removed, added again, paused, or pushed since the request
		return
	}
	switch o.Kind {
	case flow.OutcomeRead:
		if o.TextHash == "" {
			open.noteFailure(pipeline.FailUnreadable, "a text came without its hash")
			return
		}
		if a.isReplaced(d, o) {
			return
		}
		open.Reached = true
		a.documentFound(d, o)
		a.handleText(d, o)
	case flow.OutcomeUnchanged:
		switch {
		case d.findsCurrent(o):
			open.Reached = true
			a.documentFound(d, o)
			a.learn(d)
			a.textStands(d, o)
		case open.Bare:
			open.noteFailure(pipeline.FailUnreadable, "a fetch without hashes answered that nothing changed")
		default:
			open.Reached, open.Partial = true, true
			p.Soon, p.Bare = true, true
		}
	default:
		class, reason := failureOf(o)
		open.noteFailure(class, reason)
		open.Reached = open.Reached || !a.countsForExpiry(class)
		if documentMissing(class) {
			a.documentGone(d, o, class, reason)
		}
	}
}

// handleText handles a new text of d.
func (a *applier) handleText(d *Document, o flow.Outcome) {
	if d.View.Items {
		if !a.compareFeed(d, o) {
			return
		}
	} else if !d.Rested && !a.isComparable(d, o) {
		return
	}
	if d.findsCurrent(o) {
		a.learn(d)
		a.textStands(d, o)
		return
	}
	if d.Rested && d.TextHash != "" {
		a.makeVersion(d, o, 0)
		return
	}
	a.learn(d)
	if a.flipsBack(d, o) {
		a.keepUnmade(d, o)
		return
	}
	if d.TextHash != "" && d.View.Confirm > 1 && !a.confirms(d, o) {
		a.keepUnmade(d, o)
		return
	}
	previous := d.N
	if d.TextHash == "" {
		previous = 0
	}
	a.makeVersion(d, o, previous)
}

// confirms notes that o has a new text of d, and reports whether it stood for as many checks as d asks for. Words that
// change at every check would keep any text from standing: what stands beside them is enough, if it is news.
func (a *applier) confirms(d *Document, o flow.Outcome) bool {
	stood := d.Candidate.found(a.comparedHash(d, o), d.View.Confirm)
	steady := a.lessons[d.ID].Steady
	if steady == "" || steady == d.SteadyMade {
		d.Steady = candidate{}
		return stood
	}
	return d.Steady.found(steady, d.View.Confirm) || stood
}

// makeVersion makes the text of o the next version of d. previous is the version it is compared
// with, 0 for none.
func (a *applier) makeVersion(d *Document, o flow.Outcome, previous uint64) {
	d.N++
	d.TextHash, d.Body = o.TextHash, 0
	d.SteadyMade = a.lessons[d.ID].Steady
	d.noteChange(previous, a.comparedHash(d, o))
	a.textStands(d, o)
	if a.p.Open.Made == nil {
		a.p.Open.Made = make(map[string]uint64)
	}
	a.p.Open.Made[d.ID] = d.N
	v := newVersion{
		Snapshot: flow.Snapshot{
			Page: a.p.URL, Incarnation: a.p.Incarnation, Lineage: flow.Lineage(a.Position), Document: d.ID, N: d.N, Previous: previous,
			Check: o.Check, Time: o.Time, Title: o.Title, ContentType: o.ContentType, TextHash: o.TextHash,
			Value: d.View.Value != nil, New: o.Text,
		},
		Packed: o.Packed, Extractor: o.Extractor, Screenshot: o.Screenshot,
		Language: text.LanguageChoice{Document: a.p.language(), Page: o.Language, Text: o.PageLanguage},
	}
	if d.View.Items {
		r := a.feedUpdate
		v.Feed = &r
	}
	v.Replaces = a.sayRestless(d, &v.Snapshot)
	a.emit(v)
	d.Pruned = a.Now.Unix()
	a.emit(prune{d.ID, a.p.retention(a.Rules.Keep)})
}

// finishParts ends a check of which all parts arrived; o was the last.
func (a *applier) finishParts(o flow.Outcome) {
	if !a.p.Open.Partial {
		a.p.ETag, a.p.LastModified, a.p.BodyHash, a.p.Access = o.ETag, o.LastModified, o.BodyHash, o.Access
	}
	if a.p.Open.Again {
		a.requestRebase(o)
		return
	}
	if a.p.Open.Mixed {
		o.Body = nil
	}
	a.keepBody(o)
	a.closeCheck(o)
}

// closeCheck ends the outstanding check; o was its last outcome.
func (a *applier) closeCheck(o flow.Outcome) {
	p, open := a.p, a.p.Open
	p.Open = nil
	if open.Class == "" || open.Learned {
		p.Reads++
	}
	for i := range p.Documents {
		a.pruneSometimes(&p.Documents[i])
	}
	a.recordCheck(o, open)
	before := p.Trouble
	p.Trouble = open.Class
	a.emit(checkDone{
		Time: o.Time, Unchanged: open.Class == "" && len(open.Made) == 0,
		Class: open.Class, Reason: open.Reason, Before: before,
		DeadLink: p.isDeadLink(),
		Passed:   open.passedAtFirst(),
	})
	a.checkCompleted = true
	if open.Class == "" {
		a.adaptPace(len(open.Made) > 0)
	}
	if a.countCheck(o, open) {
		return
	}
	a.reschedule(o.RetryAfter)
}

// failureOf returns the class of a failed outcome, and its reason.
func failureOf(o flow.Outcome) (class, reason string) {
	switch {
	case o.Kind != flow.OutcomeFailed:
		return pipeline.FailUnreadable, fmt.Sprintf("%q is not an outcome", o.Kind)
	case o.Class == "":
		return pipeline.FailNetwork, o.Reason
	}
	return o.Class, o.Reason
}

// countsForExpiry reports whether a failure of this class counts towards expiry.
func (a *applier) countsForExpiry(class string) bool {
	return a.Rules.SelectorGone || !documentMissing(class)
}

// documentMissing reports whether a failure of this class says that a document is not on its page.
func documentMissing(class string) bool {
	return class == pipeline.FailSelectorGone || class == pipeline.FailEmpty || class == pipeline.FailReplaced
}

// recordCheck adds the complete check open to the history; o was its last outcome.
func (a *applier) recordCheck(o flow.Outcome, open *Open) {
	r := CheckRecord{
		Check: o.Check, Time: a.checkTime(o), Result: flow.OutcomeUnchanged, Class: open.Class, Reason: open.Reason,
		Offline: o.Offline, Status: o.Status, Bytes: o.Bytes, Took: pipeline.Duration(o.Took), Versions: open.Made, Passed: open.Passed,
	}
	switch {
	case open.Class != "":
		r.Result = flow.OutcomeFailed
	case open.Again:
		r.Result, r.Reason = flow.OutcomeRead, "the extraction rules changed; the stored page is read by the new ones before texts are compared"
	case o.Parts > 0:
		if r.Reason = cmp.Or(open.Note, a.unconfirmedText()); r.Reason != "" || len(open.Made) > 0 {
			r.Result = flow.OutcomeRead
		}
	}
	p := a.p
	if p.Quiet != nil && p.Quiet.isRepeat(r) {
		if r.Since = p.Quiet.Since; r.Since.IsZero() {
			r.Since = p.Quiet.Time
		}
		r.Repeats = p.Quiet.Repeats + 1
		p.Quiet = &r
		return
	}
	if p.Quiet != nil {
		a.emit(record{*p.Quiet, p.Records})
		p.Quiet = nil
	}
	p.Records++
	if r.isQuiet() {
		p.Quiet = &r
		return
	}
	a.emit(record{r, p.Records})
}

// unconfirmedText says which text is not confirmed as a version yet; empty if there is none.
func (a *applier) unconfirmedText() string {
	for _, d := range a.p.Documents {
		if stood := max(d.Candidate.Stood, d.Steady.Stood); stood > 0 {
			return fmt.Sprintf("a new text was found in %d of %d checks", stood, d.View.Confirm)
		}
	}
	return ""
}
