package index

import (
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// readByOther reports whether another extractor made the text of o than the standing text of
// d. A reader that names no extractor counts as any.
func (d *Document) readByOther(o flow.Outcome) bool {
	return d.Extractor != "" && o.Extractor != "" && o.Extractor != d.Extractor
}

// comparable reports whether the text of o can be compared with the standing one of d. It
// can where the same rules made both. Otherwise the page as it was is to be read by the
// rules of now: that needs another request, whose answer puts a new text in the place of the
// standing one. Where that is impossible, the text of o becomes a new baseline.
func (a *application) comparable(d *Document, o flow.Outcome) bool {
	p, open := &a.p, a.p.Open
	if d.TextHash == "" || o.TextHash == d.TextHash || !d.readByOther(o) {
		return true
	}
	d.Candidate, d.Stood = "", 0
	why := "the page as it was is not kept"
	if p.Body > 0 && d.Body == p.Body {
		switch r := o.Rebased; {
		case !open.Rebase:
			open.Again, open.Partial = true, true
			return false
		case r != nil && r.Failed == "" && r.TextHash != "":
			a.emit(rebase{d.ID, d.N, *r})
			d.TextHash, d.Extractor = r.TextHash, r.Extractor
			return true
		case r != nil && r.Failed != "":
			why = r.Failed
		}
	}
	a.health(o, pipeline.Health{Event: pipeline.HealthRebaselined, Document: d.ID,
		Reason: fmt.Sprintf("its text was made by %s and is now made by %s; %s", d.Extractor, o.Extractor, why)})
	a.version(d, o, 0)
	return false
}

// stands notes that the standing text of d is in the body of o.
func (a *application) stands(d *Document, o flow.Outcome) {
	d.Candidate, d.Stood = "", 0
	if o.Extractor != "" {
		d.Extractor = o.Extractor
	}
	a.p.Open.Standing = append(a.p.Open.Standing, d.ID)
}

// again asks for the page once more, with the body that is kept. The check that o completes
// does not count.
func (a *application) again(o flow.Outcome) {
	p := &a.p
	a.record(o, p.Open)
	p.Open, p.Soon, p.Bare, p.Rebase = nil, true, true, true
}

// bodyAge is after what time a later body is kept though no text in it is new. It bounds how
// old a difference may be that only the rules of a later program see, and that is told then.
const bodyAge = 24 * time.Hour

// wantsBody reports whether the next body is to be kept in any case.
func (p *Page) wantsBody(now time.Time) bool { return now.Sub(p.BodyAt).Abs() >= bodyAge }

// keepBody keeps the body of a complete check, whose last outcome is o, if standing texts are
// in it. Where a new one is too large to be kept, an earlier one goes too unless texts that
// stand are in it.
func (a *application) keepBody(o flow.Outcome) {
	p, open := &a.p, a.p.Open
	if len(open.Standing) > 0 && (o.Body != nil || open.KeepBody) {
		p.BodyAt = a.Now
	}
	if o.Body != nil && len(open.Standing) > 0 {
		p.Body = p.number(o)
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

// storedBody is a body as it is kept.
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

// loadBody returns the body that is kept, or nil.
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

// storeRebased stores a text that was made anew in the place of the one that stands.
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
		return failure.Permanent(fmt.Errorf("version %d of document %s, made anew: %w", r.N, r.Document, err))
	}
	v.TextHash, v.Title, v.Extractor, v.Packed = r.Text.TextHash, r.Text.Title, r.Text.Extractor, r.Text.Packed
	b, err := encode(v)
	if err != nil {
		return err
	}
	if err := st.Set(versionName(r.Document, r.N), b); err != nil {
		return err
	}
	return st.Set(tokensName+r.Document, text.PackTokens(text.Analyze(content)))
}
