package index

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/restless"
)

// lesson is what a new text of a document shows about its restless places.
type lesson struct {
	// Hash is that of the text without restless places, where texts are compared by it. Rebased is the
	// hash of the current text that was extracted again.
	Hash, Rebased string
	// Steady is the hash of the text without the places that are restless in their words, too; empty if there are none,
	// and if there may be news in one.
	Steady string
	// Compared says that the text was compared with that of the check before. The rest is missing without it.
	Compared bool
	restless.Lesson
	// Table is the table after it, and Stored says that one is stored.
	Table  restless.Table
	Stored bool
	// Places are those that were restless before it, and Whole says that nothing else of the document changes.
	Places restless.Set
	Whole  bool
	// Elapsed is the time since the current version was found, and Old its text if that is the text of the
	// check before.
	Elapsed time.Duration
	Old     string
	// Same says that the text is that of the check before, which is no version.
	Same bool
}

// learnMemory is how many bytes of memory it takes to compare two texts for it, for each of their bytes.
const learnMemory = 8

// lessons returns what the texts in os show that differ from those of the checks before, by document. It unpacks these
// texts.
func (s *Stage) lessons(ctx context.Context, st flow.State, p *Page, os []flow.Outcome) (map[string]lesson, error) {
	var all map[string]lesson
	for i := range os {
		o := &os[i]
		d := p.Document(o.Document)
		if d == nil || !d.learns() {
			continue
		}
		if d.findsCurrent(*o) {
			if !d.Unmade {
				continue
			}
			back, err := currentAgain(st, d, *o)
			if err != nil {
				return nil, err
			}
			o = &back
		} else if o.Kind != flow.OutcomeRead {
			continue
		}
		l, err := s.lesson(ctx, st, d, o, p.Reads+1)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = make(map[string]lesson)
		}
		all[d.ID] = l
	}
	return all, nil
}

// findsCurrent reports whether o found the current text of d.
func (d *Document) findsCurrent(o flow.Outcome) bool {
	switch o.Kind {
	case flow.OutcomeRead:
		return o.TextHash == d.TextHash
	case flow.OutcomeUnchanged:
		return o.Against == d.TextHash && d.TextHash != ""
	}
	return false
}

// currentAgain returns o, which found the current text of d, as an outcome with this text: it differs from that of the
// check before.
func currentAgain(st flow.State, d *Document, o flow.Outcome) (flow.Outcome, error) {
	current, _, err := LoadVersion(st, d.ID, d.N)
	o.Kind, o.TextHash, o.Text, o.Packed, o.Rebased = flow.OutcomeRead, d.TextHash, "", current.Packed, nil
	return o, err
}

// learns reports whether d can have restless places. A value is asked for, and items have no places.
func (d *Document) learns() bool { return d.View.Value == nil && !d.View.Items && !d.View.Sitemap }

func (s *Stage) lesson(ctx context.Context, st flow.State, d *Document, o *flow.Outcome, check uint64) (l lesson, err error) {
	compares := d.TextHash != "" && !d.Rested && !d.hasOtherExtractor(*o)
	hashes := d.View.Confirm > 1 || d.View.FlipFlop > 0
	if !compares && !hashes {
		return l, nil
	}
	if o.Text, err = o.Content(); err != nil {
		return l, failure.Permanent(fmt.Errorf("check %d of %s: %w", o.Check, o.Page, err))
	}
	if l.Table, l.Stored, err = LoadTable(st, d.ID); err != nil {
		return l, err
	}
	l.Places = l.Table.Restless(check)
	if hashes {
		if err := l.hash(o); err != nil || !compares {
			return l, err
		}
	}
	current, ok, err := LoadVersion(st, d.ID, d.N)
	if err != nil || !ok {
		return l, err
	}
	before, err := lastRead(st, d, current)
	if err != nil {
		return l, err
	}
	free, err := s.cfg.Memory.Take(ctx, learnMemory*(flow.UnpackedSize(before)+flow.UnpackedSize(o.Packed)))
	if err != nil {
		return l, err
	}
	defer free()
	old, err := flow.UnpackText(before)
	if err != nil {
		return l, failure.Broken(fmt.Errorf("index: version %d of document %s: %w", d.N, d.ID, err))
	}
	l.Same = old == o.Text
	l.Elapsed = max(o.Time.Sub(current.Time), 0)
	l.Whole = l.Table.Asked && len(l.Places) > 0
	l.Lesson = l.Table.Learn(old, o.Text, check, l.Elapsed)
	if d.View.Confirm > 1 && !l.NewWords {
		if rest, ok := l.Table.WithoutWords(o.Text); ok {
			l.Steady = l.Places.Hash(rest)
		}
	}
	if !d.Unmade {
		l.Old = old
	}
	l.Compared = true
	return l, nil
}

// lastRead returns the packed text of d at the last check that read it. current is its current version.
func lastRead(st flow.State, d *Document, current StoredVersion) ([]byte, error) {
	if !d.Unmade {
		return current.Packed, nil
	}
	packed, _, err := st.Get(unmadeName + d.ID)
	return packed, err
}

// hash sets the hashes of the texts of o.
func (l *lesson) hash(o *flow.Outcome) error {
	l.Hash = l.Places.Hash(o.Text)
	if o.Rebased == nil || o.Rebased.Failed != "" {
		return nil
	}
	content, err := flow.UnpackText(o.Rebased.Packed)
	if err != nil {
		return failure.Permanent(fmt.Errorf("a text of %s, extracted again: %w", o.Page, err))
	}
	l.Rebased = l.Places.Hash(content)
	return nil
}

// comparedHash returns the hash by which the text of o is compared with others of d that are not its current
// one: without what is restless in it.
func (a *applier) comparedHash(d *Document, o flow.Outcome) string {
	if l, ok := a.lessons[d.ID]; ok && l.Hash != "" {
		return l.Hash
	}
	return o.TextHash
}

// learn notes what the new text of d shows.
func (a *applier) learn(d *Document) {
	l := a.lessons[d.ID]
	if !l.Compared {
		return
	}
	a.p.Open.Learned = true
	if l.Same {
		return
	}
	d.Restless = len(l.Table.Restless(a.p.Reads+2)) + l.Table.CountRestlessWords()
	if l.Stored || len(l.Table.Entries) > 0 || len(l.Table.Rotations) > 0 {
		a.emit(storeTable{d.ID, l.Table})
	}
}

// sayRestless adds to s, the snapshot of a new version of d, the restless places, and those that begin to be
// restless. It reports whether the version takes the place of the one before.
func (a *applier) sayRestless(d *Document, s *flow.Snapshot) (replaces bool) {
	was := d.Quiet
	d.Quiet = false
	l := a.lessons[d.ID]
	if !l.Compared || s.Previous == 0 {
		return false
	}
	s.Restless, s.Whole, s.Elapsed, s.Old, s.Words = l.Places.Pack(), l.Whole, l.Elapsed, l.Old, nil
	if l.Old != "" { // else they are of a text that is no version
		s.Words = l.Words
	}
	s.Muting, s.MutingWords = l.Began, l.BeganWords
	if !s.Muting.IsZero() {
		l.Table.Said(s.Muting)
	}
	if !s.MutingWords.IsZero() {
		l.Table.SaidWords()
	}
	if !s.Muting.IsZero() || !s.MutingWords.IsZero() {
		a.emit(storeTable{d.ID, l.Table})
	}
	d.Quiet = l.Quiet && !l.Whole && d.Loud == 0
	return was && d.Quiet && d.TextHash != ""
}

// keepUnmade keeps the text of o, which is no version: the text of the next check is compared with it.
func (a *applier) keepUnmade(d *Document, o flow.Outcome) {
	if d.Unmade && a.lessons[d.ID].Same || !d.learns() {
		return
	}
	d.Unmade = true
	a.emit(keepUnmade{d.ID, o.Packed})
}

// dropUnmade drops that text.
func (a *applier) dropUnmade(d *Document) {
	if d.Unmade {
		d.Unmade = false
		a.emit(dropUnmade{d.ID})
	}
}

// countLoud adds n (1 or -1) to the subscriptions that may be told of differences in restless places, if s is one.
func (d *Document) countLoud(s pipeline.Subscription, n int) {
	if len(s.Keywords) == 0 && s.Restless == pipeline.RestlessTell || slices.ContainsFunc(s.Keywords, restless.Touches) {
		d.Loud += n
	}
}

// LoadTable returns what is known of the restless places of a document of the page whose state st is; ok is
// false if nothing is.
func LoadTable(st flow.State, document string) (t restless.Table, ok bool, err error) {
	b, ok, err := st.Get(restlessName + document)
	if err != nil || !ok {
		return t, false, err
	}
	return t, true, decode(b, &t)
}

// LoadRestless returns the table of LoadTable, and the places that were restless at the last check that read the
// document. whole says that nothing else of it changes.
func LoadRestless(st flow.State, document string) (t restless.Table, places restless.Set, whole bool, err error) {
	t, ok, err := LoadTable(st, document)
	if err != nil || !ok {
		return t, nil, false, err
	}
	p, err := loadProgress(st)
	places = t.Restless(p.Reads)
	return t, places, t.Asked && len(places) > 0, err
}

// LastTexts returns the text of d, a document of the page whose state st is, at the last check that read it, and the
// one before it as far as that is stored. Either may be empty.
func LastTexts(st flow.State, d Document) (last, before string, err error) {
	v, ok, err := LoadVersion(st, d.ID, d.N)
	if err != nil || !ok {
		return "", "", err
	}
	packed, err := lastRead(st, &d, v)
	if err != nil {
		return "", "", err
	}
	if last, err = flow.UnpackText(packed); err != nil {
		return "", "", failure.Broken(fmt.Errorf("index: version %d of document %s: %w", d.N, d.ID, err))
	}
	if d.Unmade {
		before, err = flow.UnpackText(v.Packed)
	} else {
		before, _, _, err = v.OldText(st, d.ID)
	}
	return last, before, err
}

func saveTable(st flow.State, o storeTable) error {
	b, err := encode(o.Table)
	if err != nil {
		return err
	}
	return st.Set(restlessName+o.Document, b)
}
