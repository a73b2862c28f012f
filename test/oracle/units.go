package oracle

import (
	"regexp"
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
	titled bool // it has a pair by its title
}

// items is what is known of the items of a page, by their numbers.
type items struct {
	words, blocks map[int]int // blocks that have tokens
	keys          map[int]Key
	keyed         map[int]int // items with a key inside
	parts         map[int]int // items of several blocks directly inside
	inParts       map[int]int // blocks of these
}

// itemsOf returns the items of p, whose blocks have these tokens.
func itemsOf(p Page, tokens [][]token) items {
	it := items{map[int]int{}, map[int]int{}, map[int]Key{}, map[int]int{}, map[int]int{}, map[int]int{}}
	parent := make(map[int]int)
	for i, b := range p {
		for k, item := range b.Items {
			if it.words[item] += len(tokens[i]); len(tokens[i]) > 0 {
				it.blocks[item]++
			}
			if k < len(b.Keys) && it.blocks[item] == 1 && it.keys[item] == (Key{}) && b.Keys[k] != (Key{}) {
				it.keys[item] = b.Keys[k]
				for _, around := range b.Items[:k] {
					it.keyed[around]++
				}
			}
			if k > 0 {
				parent[item] = b.Items[k-1]
			}
		}
	}
	for item, n := range it.blocks {
		if of := parent[item]; n > 1 {
			it.parts[of]++
			it.inParts[of] += n
		}
	}
	return it
}

// isRow reports whether an item is a mere row of others: it is nothing but two or more items of several blocks, or
// has no key and holds several with one.
func (it items) isRow(item int) bool {
	return it.parts[item] > 1 && it.inParts[item] == it.blocks[item] || it.keyed[item] > 1 && it.keys[item] == (Key{})
}

func (it items) isUnit(item int) bool {
	return it.blocks[item] == 1 || it.words[item] <= longestItem && !it.isRow(item)
}

// tokensOf returns the tokens of each block of p.
func tokensOf(p Page) [][]token {
	tokens := make([][]token, len(p))
	for i, b := range p {
		tokens[i] = tokenize(b.Text)
		for j := range tokens[i] {
			tokens[i][j].block = i
		}
	}
	return tokens
}

// units returns what grouping sees of a page, in document order. Blocks without tokens
// are none.
func units(p Page) []unit {
	tokens := tokensOf(p)
	all := itemsOf(p, tokens)
	words, blocks, keys, isUnit := all.words, all.blocks, all.keys, all.isUnit
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
		us[i].exact = joinTokens(us[i].tokens, plain)
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

// name returns what names u: what is labelled "title" or "name", the first block that does not begin with a digit, if
// it has a label such as "id: ", behind that; and no code in front of a block of several words.
func (u unit) name(p Page) string {
	bs := blockIndexes(u.tokens)
	for _, b := range bs {
		label, v, _ := strings.Cut(strings.TrimSpace(p[b].Text), ": ")
		if slices.Contains([]string{"title", "name", "headline", "subject"}, label) && v != "" {
			return v
		}
	}
	code := ""
	for _, b := range bs {
		text := strings.TrimSpace(p[b].Text)
		words := tokenize(text)
		value := text[words[0].start:]
		if _, v, ok := strings.Cut(text, ": "); ok && v != "" {
			value = v
		} else if code == "" && codePattern.MatchString(text) && !smallLetters.MatchString(text) {
			code = text
			continue
		}
		switch {
		case value[0] >= '0' && value[0] <= '9':
		case code != "" && len(words) == 1:
			return code
		default:
			return text
		}
	}
	if code != "" {
		return code
	}
	return strings.TrimSpace(p[bs[0]].Text)
}

// A code has digits, begins with none, and has no blank, point or three small letters one after the other.
var (
	codePattern  = regexp.MustCompile(`^[^ .0-9][^ .]*[0-9][^ .]*$`)
	smallLetters = regexp.MustCompile(`\p{Ll}{3}`)
)

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
