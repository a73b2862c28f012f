package index

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
)

// replaceKeep makes the page kept by the origin of r, or not any more.
func (a *application) replaceKeep(r Replace) {
	gone := a.p.Expiry
	switch {
	case r.Keep && !r.Resume && gone != nil && slices.Contains(gone.Keep, r.Origin) &&
		slices.Contains(a.p.Unasked, r.Origin) == (r.KeepInterval == pipeline.Never):
		// It stays expired until it is changed or resumed.
	case r.Keep:
		a.keep(r.Origin)
		a.p.keepEvery(r.Origin, r.KeepInterval)
	case r.Client == "":
		a.p.Keep = slices.DeleteFunc(a.p.Keep, func(o string) bool { return o == r.Origin })
		a.p.keepEvery(r.Origin, 0)
		a.forgetKept(r.Origin)
	}
}

// forgetKept forgets that origin kept the page before it was given up.
func (a *application) forgetKept(origin string) {
	p := &a.p
	if p.Expiry == nil {
		return
	}
	p.Expiry.Keep = slices.DeleteFunc(p.Expiry.Keep, func(o string) bool { return o == origin })
	if a.exists() && len(p.Expiry.Keep) == 0 {
		p.Expiry = nil
	}
}

// keep makes the page live without subscriptions, with its whole-page document.
func (a *application) keep(origin string) {
	a.live()
	a.forgetKept(origin)
	if !slices.Contains(a.p.Keep, origin) {
		a.p.Keep = append(a.p.Keep, origin)
		slices.Sort(a.p.Keep)
	}
	a.p.begin(pipeline.View{})
}

// live begins a life of the page if there is none.
func (a *application) live() {
	if a.exists() {
		return
	}
	a.p = Page{
		URL: a.URL, Incarnation: a.Position, Due: a.Now,
		Expired: a.p.Expired, Unreachable: a.p.Unreachable, Expiry: a.p.Expiry, Records: a.p.Records,
		Unasked: a.p.Unasked,
	}
	if a.p.Expiry != nil && len(a.p.Expiry.Keep) == 0 {
		a.p.Expiry = nil
	}
}

// tidy drops the documents that nobody watches any more, and with the last one the page.
func (a *application) tidy() {
	p := &a.p
	if !a.exists() {
		if p.URL != "" && !p.leaves(p.Expiry) {
			a.emit(Ended{}) // of no life, so that nothing is remembered of the page behind it
			a.over(nil)
		}
		return
	}
	for _, d := range slices.Clone(p.Documents) {
		if d.Subscriptions == 0 && !p.keeps(&d) {
			p.drop(d.ID)
			a.emit(DropDocument{d.ID})
		}
	}
	if len(p.Documents) == 0 {
		a.emit(Ended{p.Incarnation, p.Stamp, nil, p.leaves(p.Expiry)})
		a.over(p.Expiry)
	}
}

// leaves reports whether anything expired is to be kept of p, which was given up as e says.
func (p *Page) leaves(e *Expiry) bool { return p.Expired > 0 || e != nil && len(e.Keep) > 0 }

// over leaves of the page what is kept of a page that nobody watches, if anything expired.
func (a *application) over(e *Expiry) {
	p := &a.p
	if !p.leaves(e) {
		a.p = Page{}
		a.emit(Clear{All: true})
		return
	}
	a.p = Page{URL: p.URL, Expired: p.Expired, Unreachable: p.Unreachable, Expiry: e, Records: p.Records, Unasked: p.Unasked}
	a.emit(Clear{})
}
