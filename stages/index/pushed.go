package index

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Read reads the documents that r names in the pushed page p, with the readers that read
// fetched pages. It returns one outcome for each document, in the order of r.Documents, or a
// single one of Kind flow.OutcomeFailed for the page. If r has a Rebase it reads that body too.
// It returns nil if ctx ends first.
type Read func(ctx context.Context, r flow.Request, p pipeline.Pushed) []flow.Outcome

// pushedPage is a page that somebody pushed. Its outcomes have no check number: they count in
// order of arrival.
type pushedPage struct {
	ID string
	// Outcomes are one for each document of the page; none if the push is ignored.
	Outcomes []flow.Outcome
	// Replacements say why a text looks replaced, by document.
	Replacements map[string]string
	// Feeds are what is remembered of the feeds among the documents.
	Feeds map[string]feed
	// Lessons are what the new texts show about restless places, by document.
	Lessons map[string]lesson
}

func (pushedPage) action() {}

// pushRead reports that a pushed page was read.
type pushRead struct{ Time time.Time }

func (pushRead) output() {}

// seenSize is how many bytes of an ID's hash are stored.
const seenSize = 8

// rememberedPushes is how many IDs of pushed pages are remembered for each URL.
const rememberedPushes = 64

func seenHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return string(sum[:seenSize])
}

// hasSeen reports whether id is among the IDs of the last pushes.
func (p *Page) hasSeen(id string) bool {
	want := seenHash(id)
	for i := 0; i < len(p.Seen); i += seenSize {
		if string(p.Seen[i:i+seenSize]) == want {
			return true
		}
	}
	return false
}

// rememberPush adds id to the IDs of the last pushes.
func (p *Page) rememberPush(id string) {
	from := max(len(p.Seen)+seenSize-rememberedPushes*seenSize, 0)
	p.Seen = append(append([]byte(nil), p.Seen[from:]...), seenHash(id)...)
}

// handlePush handles a pushed page and reports whether it counts. It is like a check that nobody
// requested, except that it says nothing about whether the page can be reached.
func (a *applier) handlePush(do pushedPage) bool {
	p := a.p
	if !a.exists() || p.hasSeen(do.ID) || len(do.Outcomes) == 0 {
		return false
	}
	a.replacements, a.feeds, a.lessons = do.Replacements, do.Feeds, do.Lessons
	p.rememberPush(do.ID)
	p.Pushes++
	outstanding := p.Open
	// The stored body was read together with the page where that was needed.
	p.Open = &Open{Parts: len(do.Outcomes), Rebase: true, KeepBody: p.wantsBody(a.Now)}
	for _, o := range do.Outcomes {
		a.handlePart(o)
	}
	last := do.Outcomes[len(do.Outcomes)-1]
	a.keepBody(last)
	a.recordCheck(last, p.Open)
	a.emit(pushRead{a.checkTime(last)})
	if p.Open.Class == "" || p.Open.Learned {
		p.Reads++
	}
	p.Open = outstanding
	a.excludeFromOpen(do.Outcomes)
	return true
}

// excludeFromOpen excludes the documents that os found from the outstanding check, if there is one:
// the check may see an older page.
func (a *applier) excludeFromOpen(os []flow.Outcome) {
	p := a.p
	if p.Open == nil {
		return
	}
	for _, o := range os {
		if d := p.Document(o.Document); d != nil && o.Kind != flow.OutcomeFailed {
			d.Since = p.Check
			p.Open.Partial = true
			p.Open.Standing = without(p.Open.Standing, d.ID)
		}
	}
}

// without returns a copy of list without name.
func without(list []string, name string) []string {
	var rest []string
	for _, s := range list {
		if s != name {
			rest = append(rest, s)
		}
	}
	return rest
}

// checkNumber is the number for the body and the events of the outcome o: that of its check, or for
// a pushed page one that no check has.
func (p *Page) checkNumber(o flow.Outcome) uint64 {
	if o.Check > 0 {
		return o.Check
	}
	return 1<<63 | p.Pushes
}

// pushRequest says which documents to read in a pushed page.
func (p *Page) pushRequest() flow.Request {
	r := flow.Request{Page: p.URL, Incarnation: p.Incarnation}
	for _, d := range p.Documents {
		if p.isResting(&d) {
			continue
		}
		r.Documents = append(r.Documents, flow.RequestDocument{ID: d.ID, View: d.View, TextHash: d.TextHash})
	}
	return r
}

// needsRebase reports whether the current text of any document in os was extracted by other
// rules, and can be extracted again from the stored body.
func (p *Page) needsRebase(os []flow.Outcome) bool {
	for _, o := range os {
		d := p.Document(o.Document)
		if d == nil || o.Kind != flow.OutcomeRead || d.TextHash == "" || d.Body == 0 || d.Body != p.Body {
			continue
		}
		if d.hasOtherExtractor(o) {
			return true
		}
	}
	return false
}

// loadPush reads the pushed page in m, if anybody watches it.
func (s *Stage) loadPush(ctx context.Context, tx flow.Tx, p *Page, m flow.Message) (action, error) {
	page, err := flow.TakenFrom(m)
	if err != nil {
		return nil, err
	}
	do := pushedPage{ID: page.ID}
	switch {
	case p.Incarnation == "" || p.Rests():
		s.reportIgnored(tx, flow.KindUnwatched, m)
		return do, nil
	case p.hasSeen(page.ID):
		s.reportIgnored(tx, flow.KindRepeated, m)
		return do, nil
	case s.cfg.Read == nil:
		return nil, failure.Permanent(errors.New("this program does not read pushed pages"))
	}
	st, r := tx.State(m.Key), p.pushRequest()
	r.KeepBody, r.Packed = p.wantsBody(s.cfg.Now()), m.Body
	if do.Outcomes, err = s.readPush(ctx, r, page); err != nil {
		return nil, err
	}
	if p.needsRebase(do.Outcomes) {
		if r.Rebase, err = loadBody(st); err != nil {
			return nil, err
		}
		if do.Outcomes, err = s.readPush(ctx, r, page); err != nil {
			return nil, err
		}
	}
	if do.Replacements, err = s.replacements(ctx, st, p, do.Outcomes...); err != nil {
		return nil, err
	}
	if do.Feeds, err = loadFeeds(st, p, do.Outcomes...); err != nil {
		return nil, err
	}
	do.Lessons, err = s.lessons(ctx, st, p, do.Outcomes)
	return do, err
}

// readPush reads p. It is a permanent error if no document can be read, except if none of the
// documents is on the page.
func (s *Stage) readPush(ctx context.Context, r flow.Request, p pipeline.Pushed) ([]flow.Outcome, error) {
	os := s.cfg.Read(ctx, r, p)
	if len(os) == 0 {
		if ctx.Err() == nil {
			return nil, failure.Permanent(errors.New("reading the pushed page gave no result"))
		}
		return nil, context.Cause(ctx)
	}
	for _, o := range os {
		if o.Kind != flow.OutcomeFailed || documentMissing(o.Class) {
			return os, nil
		}
	}
	return nil, failure.Permanent(fmt.Errorf("the pushed page cannot be read: %s (%s)", os[0].Reason, os[0].Class))
}

// reportIgnored reports that the pushed page in m is not read.
func (s *Stage) reportIgnored(tx flow.Tx, kind string, m flow.Message) {
	tx.OnCommit(func() {
		s.cfg.Observe.Note(flow.Observation{Kind: kind, URL: m.Key, ID: m.ID, Time: m.Time})
	})
}

// reportPush reports that page was pushed; p is the page after it.
func (s *Stage) reportPush(page, document string, t pushRead) {
	s.cfg.Observe.Note(flow.Observation{Kind: flow.KindPushed, Page: page, Document: document, URL: page, Time: t.Time})
}
