package blocks

import (
	"bytes"
	"fmt"
	"slices"
)

// Passed collects what a reader passes over in a page that is not quite what its type says, for
// pipeline.Text.Passed. The zero Passed is ready for use.
type Passed struct{ kinds []passedKind }

// passedKind is how often something was passed over that is written as one or, with a number before it, as many.
type passedKind struct {
	one, many   string
	count, line int
}

// Note notes what stands at offset at in body: as one says, such as "a control character is dropped", or, with a
// number before it, as many says, such as "control characters are dropped".
func (p *Passed) Note(one, many string, body []byte, at int) {
	i := slices.IndexFunc(p.kinds, func(k passedKind) bool { return k.one == one })
	if i < 0 {
		line := bytes.Count(body[:min(max(at, 0), len(body))], []byte{'\n'}) + 1
		i, p.kinds = len(p.kinds), append(p.kinds, passedKind{one: one, many: many, line: line})
	}
	p.kinds[i].count++
}

// Sentences returns what was noted, nil if that is nothing.
func (p *Passed) Sentences() []string {
	var out []string
	for _, k := range p.kinds {
		if k.count == 1 {
			out = append(out, fmt.Sprintf("%s, in line %d", k.one, k.line))
		} else {
			out = append(out, fmt.Sprintf("%d %s, the first in line %d", k.count, k.many, k.line))
		}
	}
	return out
}
