package diff

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// tokenRange is a run of tokens in one block of a sequence. It may be empty.
type tokenRange struct {
	block    int // in sequence.blocks
	from, to int // in sequence.symbols
}

func (p tokenRange) isEmpty() bool { return p.from == p.to }

// diffPlace is where the sides of a group differ: what the old version has there and what the new one
// has. One of them may be empty.
type diffPlace struct {
	old, new tokenRange
	// keptBefore is how many kept tokens separate it from the place before it, or -1 where the two
	// cannot be shown as one.
	keptBefore int
}

// diffPlaces returns where a and b differ, in order, given the symbols that they keep. A place
// does not cross the border of a block: removed and added blocks pair off in their order.
func diffPlaces(a, b sequence, kept []run) []diffPlace {
	var out []diffPlace
	i, j, after := 0, 0, -1
	blockA, blockB := 0, 0
	gap := func(endA, endB int) {
		olds, news := splitByBlock(a, &blockA, i, endA), splitByBlock(b, &blockB, j, endB)
		within := len(olds) == 1 && len(news) == 1
		for k := range max(len(olds), len(news)) {
			p := diffPlace{keptBefore: -1}
			if k < len(olds) {
				p.old = olds[k]
			}
			if k < len(news) {
				p.new = news[k]
			}
			if p.old.isEmpty() && p.new.isEmpty() {
				continue
			}
			if within {
				p.keptBefore = after
			}
			out = append(out, p)
		}
		if after = -1; within {
			after = 0
		}
	}
	for _, r := range kept {
		for k := range r.n {
			x, y := r.a+k, r.b+k
			if i < x || j < y {
				gap(x, y)
			}
			switch {
			case a.symbols[x] == border:
				after = -1
			case after >= 0:
				after++
			}
			i, j = x+1, y+1
		}
	}
	if i < len(a.symbols) || j < len(b.symbols) {
		gap(len(a.symbols), len(b.symbols))
	}
	return out
}

// splitByBlock returns the tokens of q.symbols[from:to] by block. The first block is *block, which
// becomes the last one.
func splitByBlock(q sequence, block *int, from, to int) []tokenRange {
	for *block < len(q.blocks)-1 && q.blocks[*block].last < from {
		*block++
	}
	var out []tokenRange
	for b := *block; b < len(q.blocks); b++ {
		s := q.blocks[b]
		part := tokenRange{b, max(s.first, from), min(s.last, to)}
		if part.from > part.to {
			break
		}
		out = append(out, part)
		*block = b
		if to <= s.last {
			break
		}
	}
	return out
}

// joinNearby joins places that are at most three kept tokens apart. If text was removed and text was
// added in them, both sides then contain these tokens.
func joinNearby(all []diffPlace) []diffPlace {
	var out []diffPlace
	for len(all) > 0 {
		n, joined := 1, all[0]
		removed, added := !joined.old.isEmpty(), !joined.new.isEmpty()
		for n < len(all) && all[n].keptBefore >= 0 && all[n].keptBefore <= flow.ShownAsOne {
			joined.old.to, joined.new.to = all[n].old.to, all[n].new.to
			removed, added = removed || !all[n].old.isEmpty(), added || !all[n].new.isEmpty()
			n++
		}
		if !removed {
			joined.old = tokenRange{}
		}
		if !added {
			joined.new = tokenRange{}
		}
		out = append(out, joined)
		all = all[n:]
	}
	return out
}

// differences returns the edits of a group as they are displayed, numbered from 1.
func differences(old, new *text.Doc, a, b sequence, kept []run) []flow.Difference {
	var out []flow.Difference
	for i, p := range joinNearby(diffPlaces(a, b, kept)) {
		if !p.old.isEmpty() {
			out = append(out, p.old.toDifference(old, a, pipeline.Removed, i+1))
		}
		if !p.new.isEmpty() {
			out = append(out, p.new.toDifference(new, b, pipeline.Added, i+1))
		}
	}
	return out
}

func (p tokenRange) toDifference(d *text.Doc, q sequence, event pipeline.Event, number int) flow.Difference {
	s := q.blocks[p.block]
	first := d.Blocks[s.block].First - s.first
	block := d.Blocks[s.block]
	start, end := text.WholeWords(d.Content[block.Start:block.End], d.Tokens[first+p.from].Start-block.Start, d.Tokens[first+p.to-1].End-block.Start)
	start, end = start+block.Start, end+block.Start
	return flow.Difference{Event: event, Text: d.Content[start:end], Offset: start, Edit: number}
}
