package index

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// hasOtherExtractor reports whether the text of o was extracted by other rules than the current text
// of d: Extractor changes when a reader gets new rules. A reader that names none never counts
// as another.
func (d *Document) hasOtherExtractor(o flow.Outcome) bool {
	return d.Extractor != "" && o.Extractor != "" && o.Extractor != d.Extractor
}

// isComparable reports whether the text of o can be compared with the current text of d. It can
// if the same rules extracted both. Otherwise the stored body must be read by the new rules
// first: another request carries it, and its answer replaces the current text. If that is
// impossible, the text of o becomes a new baseline.
func (a *applier) isComparable(d *Document, o flow.Outcome) bool {
	p, open := a.p, a.p.Open
	if d.TextHash == "" || o.TextHash == d.TextHash || !d.hasOtherExtractor(o) {
		return true
	}
	d.forgetCandidate()
	why := "the body of its last version is not stored"
	if p.Body > 0 && d.Body == p.Body {
		switch r := o.Rebased; {
		case !open.Rebase:
			open.Again, open.Partial = true, true
			return false
		case r != nil && r.Failed == "" && r.TextHash != "":
			a.emit(rebase{d.ID, d.N, *r})
			d.rehashChanges(cmp.Or(a.lessons[d.ID].Rebased, r.TextHash))
			d.TextHash, d.Extractor = r.TextHash, r.Extractor
			d.Published = 0
			a.dropUnmade(d)
			return true
		case r != nil && r.Failed != "":
			why = r.Failed
		}
	}
	a.emitHealth(o, pipeline.Health{Event: pipeline.HealthRebaselined, Document: d.ID,
		Reason: fmt.Sprintf("its text was extracted by %s and is now extracted by %s; %s", d.Extractor, o.Extractor, why)})
	a.makeVersion(d, o, 0)
	return false
}

// textStands notes that the body of o contains the current text of d.
func (a *applier) textStands(d *Document, o flow.Outcome) {
	d.forgetCandidate()
	d.Replaced, d.Rested = 0, false
	a.dropUnmade(d)
	if o.Extractor != "" {
		d.Extractor = o.Extractor
	}
	a.p.Open.Standing = append(a.p.Open.Standing, d.ID)
}

// requestRebase requests the page once more, with the stored body. The check that o completes does not
// count.
func (a *applier) requestRebase(o flow.Outcome) {
	p := a.p
	a.recordCheck(o, p.Open)
	p.Open, p.Soon, p.Bare, p.Rebase = nil, true, true, true
}

// bodyAge is how old the stored body may become before a later one is stored although no text
// in it is new. New extraction rules may see a difference that the old ones did not: it is at
// most this old.
const bodyAge = 24 * time.Hour

// wantsBody reports whether the next body must be stored even if no text in it is new.
func (p *Page) wantsBody(now time.Time) bool { return now.Sub(p.BodyAt).Abs() >= bodyAge }

// keepBody stores the body of a complete check, whose last outcome is o, if it contains current
// texts. If it is too large to be stored, the stored one is deleted, unless that contains
// current texts.
func (a *applier) keepBody(o flow.Outcome) {
	p, open := a.p, a.p.Open
	if len(open.Standing) > 0 && (o.Body != nil || open.KeepBody) {
		p.BodyAt = a.Now
	}
	if o.Body != nil && len(open.Standing) > 0 {
		p.Body = p.checkNumber(o)
		for _, id := range open.Standing {
			if d := p.Document(id); d != nil {
				d.Body = p.Body
			}
		}
		a.emit(keepBody{*o.Body})
		return
	}
	if p.Body == 0 {
		return
	}
	for _, d := range p.Documents {
		if d.Body == p.Body {
			return
		}
	}
	p.Body = 0
	a.emit(dropBody{})
}

// storedBody is a body as it is stored.
type storedBody struct {
	URL             string `cbor:"1,keyasint"`
	ContentType     string `cbor:"2,keyasint"`
	ContentLanguage string `cbor:"3,keyasint,omitempty"`
	Packed          []byte `cbor:"4,keyasint"`
}

func storeBody(st flow.State, body flow.Body) error {
	b, err := encode(storedBody(body))
	if err != nil {
		return err
	}
	return st.Set(bodyName, b)
}

// LoadBody returns the stored body of the page whose state st is, if d, a document of it, has its current text from
// that; else nil.
func LoadBody(st flow.State, p Page, d Document) (*flow.Body, error) {
	if p.Body == 0 || d.Body != p.Body {
		return nil, nil
	}
	return loadBody(st)
}

// loadBody returns the stored body, or nil.
func loadBody(st flow.State) (*flow.Body, error) {
	b, ok, err := st.Get(bodyName)
	if err != nil || !ok {
		return nil, err
	}
	var body storedBody
	if err := decode(b, &body); err != nil {
		return nil, err
	}
	return (*flow.Body)(&body), nil
}

// storeRebased replaces the text of a version by one that was extracted again.
func storeRebased(st flow.State, r rebase) error {
	v, ok, err := LoadVersion(st, r.Document, r.N)
	if err != nil {
		return err
	}
	if !ok {
		return failure.Broken(fmt.Errorf("index: version %d of document %s is missing in the store", r.N, r.Document))
	}
	content, err := flow.UnpackText(r.Text.Packed)
	if err != nil {
		return failure.Permanent(fmt.Errorf("version %d of document %s, extracted again: %w", r.N, r.Document, err))
	}
	v.TextHash, v.Title, v.Extractor, v.Packed = r.Text.TextHash, r.Text.Title, r.Text.Extractor, r.Text.Packed
	b, err := encode(v)
	if err != nil {
		return err
	}
	if err := st.Set(versionName(r.Document, r.N), b); err != nil {
		return err
	}
	return storeAnalysis(st, r.Document, text.AnalyzePacked(content, flow.UnpackKeys(r.Text.Packed), nil))
}
