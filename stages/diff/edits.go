package diff

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// partners returns where on the other side each symbol is kept, or -1.
func partners(kept []run, n, m int) (a, b []int) {
	a, b = make([]int, n), make([]int, m)
	for i := range a {
		a[i] = -1
	}
	for j := range b {
		b[j] = -1
	}
	for _, r := range kept {
		for k := range r.n {
			a[r.a+k], b[r.b+k] = r.b+k, r.a+k
		}
	}
	return a, b
}

// blockEdits returns the edits of one block, as token indexes within it, from where each
// of its tokens is kept: runs of tokens that are not, and empty edits between two that
// are kept but not side by side. At a block's border there are no empty edits: no
// phrase can have been joined or split there.
func blockEdits(partner []int) []pipeline.Span {
	var edits []pipeline.Span
	for i := 0; i < len(partner); {
		if partner[i] >= 0 {
			i++
			if i < len(partner) && partner[i] >= 0 && partner[i] != partner[i-1]+1 {
				edits = append(edits, pipeline.Span{i, i})
			}
			continue
		}
		from := i
		for i < len(partner) && partner[i] < 0 {
			i++
		}
		edits = append(edits, pipeline.Span{from, i})
	}
	return edits
}

// differences returns the edits of block b of d as people read them.
func differences(d *text.Doc, b int, edits []pipeline.Span, event pipeline.Event) []pipeline.Difference {
	shown := pipeline.ShownEdits(edits)
	out := make([]pipeline.Difference, len(shown))
	for i, e := range shown {
		first := d.Blocks[b].First
		start, end := d.Tokens[first+e[0]].Start, d.Tokens[first+e[1]-1].End
		out[i] = pipeline.Difference{Event: event, Text: d.Content[start:end], Offset: start}
	}
	return out
}
