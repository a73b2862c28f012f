package text

import (
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// MaxItem is how many tokens a list item or table row may have to be one unit.
const MaxItem = 40

// Doc is a text as it is compared: its tokens, the blocks that hold them, and the
// units of blocks that grouping compares.
type Doc struct {
	Content string
	Tokens  []Token
	// Blocks are those that have a token, in order; every token is in exactly one.
	Blocks []Block
	// Units cover Blocks in order, each block in exactly one.
	Units []Unit
}

// Block is a paragraph, heading, cell, list item or line: the bytes [Start, End) of the
// text, without marks; the tokens [First, Last); and the index of its unit.
type Block struct {
	Start, End  int
	First, Last int
	Unit        int
}

// Unit is what grouping counts as one block: the blocks [FirstBlock, LastBlock). It is a
// single block, or the outermost list item or table row of at most MaxItem tokens.
type Unit struct{ FirstBlock, LastBlock int }

// Text returns token i as it stands in the text.
func (d *Doc) Text(i int) string { return d.Content[d.Tokens[i].Start:d.Tokens[i].End] }

// Analyze reads content, a pipeline.Text's Content: blocks end with pipeline.BlockEnd,
// list items and table rows stand between pipeline.ItemStart and pipeline.ItemEnd. It
// takes any string: a mark ends a block too, an item end without a start is passed over, and
// what is open at the end ends there.
func Analyze(content string) *Doc {
	d := &Doc{Content: content, Tokens: make([]Token, 0, len(content)/6+1)}
	d.layOut(func(start, end int) { d.Tokens = appendTokens(d.Tokens, content, start, end) })
	return d
}

// layOut finds the blocks and units of d.Content. It calls tokens for each stretch between
// marks, in order; tokens extends d.Tokens by those of content[start:end].
func (d *Doc) layOut(tokens func(start, end int)) {
	var items []Unit // by their ends, thus inner before outer
	var open []int   // the first block of each open item
	eachBlock(d.Content, func(start, end int) {
		first := len(d.Tokens)
		tokens(start, end)
		if len(d.Tokens) > first {
			d.Blocks = append(d.Blocks, Block{Start: start, End: end, First: first, Last: len(d.Tokens)})
		}
	}, func(mark byte) {
		switch {
		case mark == pipeline.ItemStart:
			open = append(open, len(d.Blocks))
		case mark == pipeline.ItemEnd && len(open) > 0:
			items = append(items, Unit{open[len(open)-1], len(d.Blocks)})
			open = open[:len(open)-1]
		}
	})
	for i := len(open) - 1; i >= 0; i-- {
		items = append(items, Unit{open[i], len(d.Blocks)})
	}
	d.units(items)
}

// units groups the blocks by the outermost of items that are short enough.
func (d *Doc) units(items []Unit) {
	// last[b] is where the longest unit that begins with block b ends. An item that holds
	// another comes behind it in items, so the outer overwrites the inner.
	last := make([]int, len(d.Blocks))
	for i := range last {
		last[i] = i + 1
	}
	for _, it := range items {
		if it.FirstBlock < it.LastBlock &&
			d.Blocks[it.LastBlock-1].Last-d.Blocks[it.FirstBlock].First <= MaxItem {
			last[it.FirstBlock] = it.LastBlock
		}
	}
	for b := 0; b < len(d.Blocks); b = last[b] {
		for i := b; i < last[b]; i++ {
			d.Blocks[i].Unit = len(d.Units)
		}
		d.Units = append(d.Units, Unit{b, last[b]})
	}
}

const marks = string(pipeline.BlockEnd) + string(pipeline.ItemStart) + string(pipeline.ItemEnd)

// eachBlock calls block for every stretch of content between marks, empty ones left
// out, and mark for every mark, in order.
func eachBlock(content string, block func(start, end int), mark func(byte)) {
	for start := 0; start < len(content); {
		end := len(content)
		if i := strings.IndexAny(content[start:], marks); i >= 0 {
			end = start + i
		}
		if start < end {
			block(start, end)
		}
		if end < len(content) {
			mark(content[end])
		}
		start = end + 1
	}
}
