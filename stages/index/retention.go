package index

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// MaxKeep is the largest number of versions of a document that are stored. Their numbers and times are in the
// state of the page, which every check reads.
const MaxKeep = 1000

// setRetention notes which versions origin, which keeps the page, wants to be stored; the zero value if
// it does not say.
func (p *Page) setRetention(origin string, r retention) {
	p.Retentions = maps.Clone(p.Retentions)
	if r == (retention{}) {
		delete(p.Retentions, origin)
		return
	}
	if p.Retentions == nil {
		p.Retentions = make(map[string]retention)
	}
	p.Retentions[origin] = r
}

// retention returns which versions of the documents of p are stored: what the origins say that keep
// the page, or else standard. Of several origins the one that wants to store more decides.
func (p *Page) retention(standard retention) retention {
	var r retention
	for i, of := range p.keptRetentions() {
		of.Versions = cmp.Or(of.Versions, standard.Versions)
		of.For = cmp.Or(of.For, standard.For)
		if r.Versions = max(r.Versions, of.Versions); i == 0 || of.For == 0 || r.For > 0 && of.For > r.For {
			r.For = of.For
		}
	}
	if r == (retention{}) {
		return standard
	}
	return r
}

// keptRetentions returns what the origins that keep p say about its versions.
func (p *Page) keptRetentions() []retention {
	var all []retention
	for _, origin := range p.Keep {
		if r, ok := p.Retentions[origin]; ok {
			all = append(all, r)
		}
	}
	return all
}

// dropOldVersions drops the versions of d that are no longer to be stored. The current one stays.
func (a *applier) dropOldVersions(d *Document) {
	if d.TextHash == "" {
		return
	}
	r := a.p.retention(a.Rules.Keep)
	for len(d.Kept) > 1 && (len(d.Kept) > max(r.Versions, 1) || r.For > 0 && a.Now.Sub(time.Unix(d.Kept[1].At, 0)) >= r.For) {
		a.dropKept(d, 0)
	}
}

// dropKept drops d.Kept[i], which is not the current version.
func (a *applier) dropKept(d *Document, i int) {
	n := d.Kept[i].N
	a.emit(dropVersion{d.ID, n})
	if d.Screenshots {
		a.emit(dropScreenshot{d.ID, n})
	}
	d.Kept = slices.Delete(d.Kept, i, i+1)
	d.Oldest = d.Kept[0].N
}
