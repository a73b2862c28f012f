package match

import (
	"encoding/binary"
	"slices"
)

// identity returns a string that equal patterns share.
func (p *pattern) identity() string {
	b := []byte{p.class, 0}
	if p.any {
		b[1] = 1
	}
	for _, t := range p.terms {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	return string(b)
}

// keys calls f with every key under which p could be found, and which of its terms that is.
func (p *pattern) keys(f func(at int, k key)) {
	if p.any || len(p.terms) == 1 {
		for i, t := range p.terms {
			f(i, key{class: p.class, a: t})
		}
		return
	}
	for i := range p.terms[1:] {
		f(i, key{p.class, p.terms[i], p.terms[i+1]})
	}
}

// distinct returns terms in ascending order, each once.
func distinct(terms []uint32) []uint32 {
	slices.Sort(terms)
	return slices.Compact(terms)
}
