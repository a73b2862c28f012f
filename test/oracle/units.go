package oracle

import (
	"slices"
	"strings"
)

// longestItem is the most tokens that an item of several blocks may have to count as one block.
const longestItem = 40

// unit is what counts as one block for grouping: a block, or the blocks of an item.
type unit struct {
	tokens []token // with a border behind each block
	folded string  // what must be equal for two units to be equal
	exact  string
	length int // tokens without borders
	isItem bool
	index  int // among the units of its page
	gap    int // how many units that stayed in order are before it
	weight int
}

// units returns what grouping sees of a page, in document order. Blocks without tokens
// are none.
func units(p Page) []unit {
	tokens := make([][]token, len(p))
	words := make(map[int]int)  // by item
	blocks := make(map[int]int) // that have tokens, by item
	parent := make(map[int]int)
	for i, b := range p {
		tokens[i] = tokenize(b.Text)
		for j := range tokens[i] {
			tokens[i][j].block = i
		}
		for k, item := range b.Items {
			if words[item] += len(tokens[i]); len(tokens[i]) > 0 {
				blocks[item]++
			}
			if k > 0 {
				parent[item] = b.Items[k-1]
			}
		}
	}
	// An item that is nothing but two or more items of several blocks is a mere row of them.
	parts, inParts := make(map[int]int), make(map[int]int)
	for item, n := range blocks {
		if of := parent[item]; n > 1 {
			parts[of]++
			inParts[of] += n
		}
	}
	var us []unit
	last := 0 // item of the last unit, 0 for none
	for i, b := range p {
		if len(tokens[i]) == 0 {
			continue
		}
		item := 0
		for _, it := range b.Items {
			if blocks[it] == 1 || words[it] <= longestItem && (parts[it] < 2 || inParts[it] < blocks[it]) {
				item = it
				break
			}
		}
		if item == 0 || item != last {
			us = append(us, unit{isItem: item != 0, index: len(us)})
		}
		last = item
		u := &us[len(us)-1]
		u.length += len(tokens[i])
		u.tokens = append(append(u.tokens, tokens[i]...), token{block: i})
	}
	for i := range us {
		us[i].folded = joinTokens(us[i].tokens, fold)
		us[i].exact = joinTokens(us[i].tokens, func(s string) string { return s })
	}
	return us
}

// isTitle reports whether title is the beginning of the first block of a list item or row of p, up to longestItem
// tokens long.
func isTitle(p Page, title string) bool {
	return slices.ContainsFunc(units(p), func(u unit) bool {
		return strings.HasPrefix(strings.TrimSpace(p[u.tokens[0].block].Text), strings.TrimSuffix(title, "…"))
	})
}

func joinTokens(ts []token, f func(string) string) string {
	var b strings.Builder
	for _, t := range ts {
		b.WriteString(f(t.text))
		b.WriteByte(' ')
	}
	return b.String()
}

// blockIndexes returns the indexes of the blocks in ts.
func blockIndexes(ts []token) []int {
	var bs []int
	for _, t := range ts {
		if len(bs) == 0 || bs[len(bs)-1] != t.block {
			bs = append(bs, t.block)
		}
	}
	return bs
}

// foldedWords returns ts without borders, folded.
func foldedWords(ts []token) []string {
	var ss []string
	for _, t := range ts {
		if !t.isBorder() {
			ss = append(ss, fold(t.text))
		}
	}
	return ss
}
