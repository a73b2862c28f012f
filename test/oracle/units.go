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
	key    Key // of its item, or of the item around a block
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
	keys := make(map[int]Key)
	keyed := make(map[int]int) // items with a key inside, by item
	for i, b := range p {
		tokens[i] = tokenize(b.Text)
		for j := range tokens[i] {
			tokens[i][j].block = i
		}
		for k, item := range b.Items {
			if words[item] += len(tokens[i]); len(tokens[i]) > 0 {
				blocks[item]++
			}
			if k < len(b.Keys) && blocks[item] == 1 && keys[item] == (Key{}) && b.Keys[k] != (Key{}) {
				keys[item] = b.Keys[k]
				for _, around := range b.Items[:k] {
					keyed[around]++
				}
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
	isUnit := func(item int) bool {
		// Nor is one without a key that holds several with one.
		isRow := parts[item] > 1 && inParts[item] == blocks[item] || keyed[item] > 1 && keys[item] == (Key{})
		return blocks[item] == 1 || words[item] <= longestItem && !isRow
	}
	// keyOf returns the key of a unit in items: that of the item, or of the only item in it; of a block, that of
	// the innermost item around it that has one and is not too long.
	keyOf := func(item int, items []int) (k Key) {
		for _, it := range items {
			switch {
			case item == 0 && keys[it] != (Key{}) && words[it] <= longestKeyed:
				k = keys[it]
			case item != 0 && k == (Key{}) && blocks[it] == blocks[item] && slices.Index(items, it) >= slices.Index(items, item):
				k = keys[it]
			}
		}
		return k
	}
	var us []unit
	last := 0 // item of the last unit, 0 for none
	for i, b := range p {
		if len(tokens[i]) == 0 {
			continue
		}
		item := 0
		for _, it := range b.Items {
			if isUnit(it) {
				item = it
				break
			}
		}
		if item == 0 || item != last {
			us = append(us, unit{isItem: item != 0, key: keyOf(item, b.Items), index: len(us)})
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

// isTitle reports whether title names an item of p: it is the beginning of its first block that is no number, or
// of its first block, up to longestItem tokens long.
func isTitle(p Page, title string) bool {
	return slices.ContainsFunc(units(p), func(u unit) bool {
		return strings.HasPrefix(u.name(p), strings.TrimSuffix(title, "…"))
	})
}

// name returns the block that names u: the first that does not begin with a digit, if it has a label such as "id: ",
// behind that.
func (u unit) name(p Page) string {
	bs := blockIndexes(u.tokens)
	for _, b := range bs {
		text := strings.TrimSpace(p[b].Text)
		value := text[tokenize(text)[0].start:]
		if _, v, ok := strings.Cut(text, ": "); ok && v != "" {
			value = v
		}
		if value[0] < '0' || value[0] > '9' {
			return text
		}
	}
	return strings.TrimSpace(p[bs[0]].Text)
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
