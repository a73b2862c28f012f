package index

import (
	"cmp"
	"maps"
	"time"
)

// MaxKeep is the largest number of versions of a document that are stored. Their times are in the
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
	for d.Oldest < d.N && (d.N-d.Oldest >= uint64(max(r.Versions, 1)) || r.For > 0 && d.replacedFor(d.Oldest, a.Now) >= r.For) {
		a.emit(dropVersion{d.ID, d.Oldest})
		if d.Screenshots {
			a.emit(dropScreenshot{d.ID, d.Oldest})
		}
		d.Oldest++
	}
	if extra := len(d.Times) - int(d.N-d.Oldest+1); extra > 0 {
		d.Times = d.Times[extra:]
	}
}

// replacedFor returns for how long version n, which is not the current one, has been replaced by the
// next one; 0 if that is not known.
func (d *Document) replacedFor(n uint64, now time.Time) time.Duration {
	i := len(d.Times) - int(d.N-n)
	if i < 0 {
		return 0
	}
	return now.Sub(time.Unix(d.Times[i], 0))
}
