package diff

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// sizeOf counts the tokens that changed between old and new, whose difference groups is.
func sizeOf(old, new *text.Doc, groups []flow.Group) flow.Size {
	s := flow.Size{Old: len(old.Tokens), New: len(new.Tokens)}
	for _, g := range groups {
		switch {
		case g.Moved:
			for _, w := range g.New {
				s.Moved += tokensIn(new, w.Offset, len(w.Text))
			}
		case g.Coarse:
			for _, d := range g.Differences {
				if d.Event == pipeline.Removed {
					s.Removed += tokensIn(old, d.Offset, len(d.Text))
				} else {
					s.Added += tokensIn(new, d.Offset, len(d.Text))
				}
			}
		default:
			s.Removed += edited(g.Old)
			s.Added += edited(g.New)
		}
	}
	return s
}

// edited returns how many tokens the edits of the windows hold.
func edited(windows []flow.Window) (n int) {
	for _, w := range windows {
		for _, e := range w.Edits {
			n += e[1] - e[0]
		}
	}
	return n
}

// tokensIn returns how many tokens of d begin within the given range of its text.
func tokensIn(d *text.Doc, offset, length int) int {
	before := func(at int) int {
		i, _ := slices.BinarySearchFunc(d.Tokens, at, func(t text.Token, at int) int { return cmp.Compare(t.Start, at) })
		return i
	}
	return before(offset+length) - before(offset)
}
