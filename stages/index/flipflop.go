package index

import (
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

// flipsBack reports whether the text of o is one of the last changes of d, so that it is not a new
// version. The current version stays what the next version is compared with: the versions are
// a chain, and what readers know of the document is always its current version.
func (a *applier) flipsBack(d *Document, o flow.Outcome) bool {
	hash := a.comparedHash(d, o)
	i := slices.IndexFunc(d.Changes, func(v madeVersion) bool { return v.TextHash == hash })
	if i < 0 {
		return false
	}
	d.forgetCandidate()
	if a.p.Open.Note == "" {
		a.p.Open.Note = fmt.Sprintf("the page has the text of version %d again, which is not reported because of flip_flop: %d; version %d stays current",
			d.Changes[i].N, d.View.FlipFlop, d.N)
	}
	return true
}

// noteChange notes the current version among the changes; hash is that by which its text is compared. If it is a
// baseline, because previous is 0, nobody was told its text and none of the earlier texts counts any more.
func (d *Document) noteChange(previous uint64, hash string) {
	switch k := d.View.FlipFlop; {
	case previous == 0 || k == 0:
		d.Changes = nil
	default:
		d.Changes = append(d.Changes, madeVersion{d.N, hash})
		d.Changes = slices.Delete(d.Changes, 0, max(len(d.Changes)-k, 0))
	}
}

// rehashChanges notes that the text of the current version was extracted again by new rules and now has
// the given hash. The hashes of the other changes are of the old rules, which no text has again.
func (d *Document) rehashChanges(hash string) {
	d.Changes = slices.DeleteFunc(d.Changes, func(v madeVersion) bool { return v.N != d.N })
	for i := range d.Changes {
		d.Changes[i].TextHash = hash
	}
}
