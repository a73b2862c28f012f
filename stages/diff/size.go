package diff

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// changeSize counts the tokens that changed between old and new, whose difference groups is.
func changeSize(old, new *text.Doc, groups []flow.Group) flow.Size {
	s := flow.Size{Old: len(old.Tokens), New: len(new.Tokens)}
	for _, g := range groups {
		switch {
		case g.Moved:
			for _, w := range g.New {
				s.Moved += countTokensIn(new, w.Offset, len(w.Text))
			}
		case g.Coarse:
			for _, d := range g.Differences {
				if d.Event == pipeline.Removed {
					s.Removed += countTokensIn(old, d.Offset, len(d.Text))
				} else {
					s.Added += countTokensIn(new, d.Offset, len(d.Text))
				}
			}
		default:
			s.Removed += countEdited(g.Old)
			s.Added += countEdited(g.New)
		}
	}
	return s
}

// countEdited returns how many tokens the edits of the windows hold.
func countEdited(windows []flow.Window) (n int) {
	for _, w := range windows {
		for _, e := range w.Edits {
			n += e[1] - e[0]
		}
	}
	return n
}

// countTokensIn returns how many tokens of d begin within the given range of its text.
func countTokensIn(d *text.Doc, offset, length int) int {
	before := func(at int) int {
		i, _ := slices.BinarySearchFunc(d.Tokens, at, func(t text.Token, at int) int { return cmp.Compare(t.Start, at) })
		return i
	}
	return before(offset+length) - before(offset)
}
