package match

import (
	"iter"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// eachWindow returns the windows of g, each with its side. Those of a coarse group are made
// one after the other, from its blocks, so that no more of them need be in memory than are kept.
func eachWindow(g *pipeline.Group) iter.Seq2[int, window] {
	return func(yield func(int, window) bool) {
		if g.Coarse {
			eachBlock(g, yield)
			return
		}
		for side, ws := range [2][]pipeline.Window{older: g.Old, newer: g.New} {
			for i := range ws {
				if !yield(side, newWindow(&ws[i], g.Moved)) {
					return
				}
			}
		}
	}
}

// eachBlock returns the blocks of the stretches of a coarse group, in order.
func eachBlock(g *pipeline.Group, yield func(int, window) bool) {
	for side, stretch := range stretches(g) {
		doc := text.Analyze(stretch.Text)
		for _, b := range doc.Blocks {
			w := &pipeline.Window{
				Offset: stretch.Offset + b.Start, Text: stretch.Text[b.Start:b.End],
				Tokens: make([]pipeline.Span, 0, b.Last-b.First), Edits: []pipeline.Span{{0, b.Last - b.First}},
			}
			for _, t := range doc.Tokens[b.First:b.Last] {
				w.Tokens = append(w.Tokens, pipeline.Span{t.Start - b.Start, t.End - b.Start})
			}
			if !yield(side, newWindow(w, g.Moved)) {
				return
			}
		}
	}
}

// stretches returns the stretches of a coarse group, the older side first.
func stretches(g *pipeline.Group) iter.Seq2[int, pipeline.Window] {
	return func(yield func(int, pipeline.Window) bool) {
		for side, ws := range [2][]pipeline.Window{older: g.Old, newer: g.New} {
			for _, w := range ws {
				if !yield(side, w) {
					return
				}
			}
			for _, d := range g.Differences {
				if d.Event == events[side] && !yield(side, pipeline.Window{Offset: d.Offset, Text: d.Text}) {
					return
				}
			}
		}
	}
}

// knows reports whether w holds a word of any keyword.
func (x *index) knows(w *window) bool {
	for c := range x.classes {
		keep := x.keep(uint8(c), w)
		for i := range w.Tokens {
			if keep(i) && x.dicts[c][x.norm.Term(w.token(i), x.classes[c].form)] != 0 {
				return true
			}
		}
	}
	return false
}
