package index

import (
	"cmp"
	"maps"
	"time"
)

// Which versions are stored where nothing else is said.
const (
	DefaultKeep    = 1000
	DefaultKeepFor = 90 * 24 * time.Hour
	// MaxKeep is the largest number of versions of a document that are kept for their own sake.
	MaxKeep = 1000
)

const (
	// linkedFor is how long a version is stored that a notification links to, and the one before it.
	linkedFor = 30 * 24 * time.Hour
	// maxLinked bounds the stored versions of a document, those that notifications link to among them. Their list
	// is read and written with every new version.
	maxLinked = 10_000
	// maxPruneGap is how long old versions may stay at a page that does not change.
	maxPruneGap = 24 * time.Hour
)

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

// pruneSometimes drops the old versions of d at a check that makes none. To look at each check would cost more than it
// gives back.
func (a *applier) pruneSometimes(d *Document) {
	r := a.p.retention(a.Rules.Keep)
	gap := maxPruneGap
	if r.For > 0 {
		gap = min(r.For/24, maxPruneGap)
	}
	if last := a.Now.Sub(time.Unix(d.Pruned, 0)); d.TextHash == "" || last >= 0 && last < gap {
		return
	}
	d.Pruned = a.Now.Unix()
	a.emit(prune{d.ID, r})
}
