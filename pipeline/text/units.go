package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// openItem is an item of which the end has not come, or that is not known to be a unit.
type openItem struct {
	Unit
	// keyed is how many items in it have a key, parts how many of the outermost items in it have several
	// blocks, and inParts how many blocks these have.
	keyed, parts, inParts int
}

// layOut finds the blocks and units of d.Content, whose items have the given keys. It calls tokens for each
// stretch between marks, in order; tokens extends d.Tokens by those of content[start:end].
func (d *Doc) layOut(keys []pipeline.Key, tokens func(start, end int)) {
	d.Blocks = slices.Grow(d.Blocks, strings.Count(d.Content, string(pipeline.BlockEnd))+1)
	var items, open []openItem // items by their ends, thus inner before outer
	end := func() {
		last := len(open) - 1
		it := open[last]
		open = open[:last]
		if it.LastBlock = len(d.Blocks); it.FirstBlock == it.LastBlock {
			return
		}
		if last > 0 {
			open[last-1].hold(it)
		}
		items = append(items, it)
	}
	eachBlock(d.Content, func(start, end int) {
		first := len(d.Tokens)
		tokens(start, end)
		if len(d.Tokens) > first {
			d.Blocks = append(d.Blocks, Block{Start: start, End: end, First: first, Last: len(d.Tokens)})
		}
	}, func(mark byte) {
		switch {
		case mark == pipeline.ItemStart:
			it := openItem{Unit: Unit{FirstBlock: len(d.Blocks), Item: true}}
			if len(keys) > 0 {
				it.Key, keys = keys[0], keys[1:]
			}
			open = append(open, it)
		case mark == pipeline.ItemEnd && len(open) > 0:
			end()
		}
	})
	for len(open) > 0 {
		end()
	}
	d.groupIntoUnits(items)
	d.findLongItems(items)
}

// hold notes that inner is an outermost item in it.
func (it *openItem) hold(inner openItem) {
	if it.keyed += inner.keyed; inner.Key != 0 {
		it.keyed++
	}
	if n := inner.LastBlock - inner.FirstBlock; n > 1 {
		it.parts++
		it.inParts += n
	}
}

// isUnit reports whether it counts as one block: it has one, or it is short and no mere row of others.
func (d *Doc) isUnit(it openItem) bool {
	return it.LastBlock-it.FirstBlock == 1 || d.countTokens(it.Unit) <= MaxItem && !it.isRow()
}

// isRow reports whether it is a mere row of others.
func (it *openItem) isRow() bool {
	return it.parts > 1 && it.inParts == it.LastBlock-it.FirstBlock || it.keyed > 1 && it.Key == 0
}

// findLongItems finds the long ones of the items, which come by their ends.
func (d *Doc) findLongItems(items []openItem) {
	var long []Unit
	for _, it := range items {
		if it.LastBlock-it.FirstBlock == 1 || d.countTokens(it.Unit) <= MaxItem || it.isRow() {
			continue
		}
		if n := len(long); n == 0 || long[n-1].FirstBlock < it.FirstBlock {
			long = append(long, it.Unit)
		}
	}
	for i, it := range long {
		if i > 0 && long[i-1].LastBlock == it.FirstBlock || i+1 < len(long) && it.LastBlock == long[i+1].FirstBlock ||
			it.FirstBlock > 0 && d.isOfList(it.FirstBlock-1, it) || it.LastBlock < len(d.Blocks) && d.isOfList(it.LastBlock, it) {
			d.LongItems = append(d.LongItems, it)
		}
	}
}

// isOfList reports whether block b is in an item of the list of which it is.
func (d *Doc) isOfList(b int, it Unit) bool {
	u := d.Units[d.Blocks[b].Unit]
	return u.Item && u.Key != 0 && it.Key != 0 && u.Key.List() == it.Key.List()
}

func (d *Doc) countTokens(u Unit) int {
	return d.Blocks[u.LastBlock-1].Last - d.Blocks[u.FirstBlock].First
}

// groupIntoUnits groups the blocks by the outermost of items that are units. The other blocks are units of
// their own, with the key of the item around them if that is short enough.
func (d *Doc) groupIntoUnits(items []openItem) {
	d.Units = slices.Grow(d.Units, len(d.Blocks))
	// longest[b] is the longest unit that begins with block b. An item that holds another comes
	// behind it in items, so the outer overwrites the inner.
	longest := make([]Unit, len(d.Blocks))
	for i := range longest {
		longest[i] = Unit{FirstBlock: i, LastBlock: i + 1}
	}
	for _, it := range items {
		switch inner := longest[it.FirstBlock]; {
		case d.isUnit(it):
			if it.Key == 0 && inner.LastBlock == it.LastBlock {
				it.Key = inner.Key // the only item in it
			}
			longest[it.FirstBlock] = it.Unit
		case it.Key != 0 && d.countTokens(it.Unit) <= maxKeyedItem:
			for b := it.FirstBlock; b < it.LastBlock; b++ {
				if longest[b].Key == 0 && !longest[b].Item {
					longest[b].Key = it.Key
				}
			}
		}
	}
	for b := 0; b < len(d.Blocks); b = longest[b].LastBlock {
		for i := b; i < longest[b].LastBlock; i++ {
			d.Blocks[i].Unit = len(d.Units)
		}
		d.Units = append(d.Units, longest[b])
	}
}

// maxWordExtension is how many bytes WholeWords adds on each side at most.
const maxWordExtension = 64

// WholeWords returns s[from:to], whose borders are those of tokens, extended to the words as people
// write them where these are several tokens: Korean words, which have a token for each syllable,
// and words with an elided one before them, such as "l'eau". An entity that was not expanded,
// such as "&m;", is extended to all of it. Words in scripts without spaces are not extended.
func WholeWords(s string, from, to int) (int, int) {
	first, last := max(from-maxWordExtension, 0), min(to+maxWordExtension, len(s))
	for from > first {
		before, n := utf8.DecodeLastRuneInString(s[:from])
		after, _ := utf8.DecodeRuneInString(s[from:])
		if m := apostropheBefore(s[:from]); m > 0 && unicode.IsLetter(after) {
			n = m
		} else if !isOneWord(before, after) {
			break
		}
		from -= n
	}
	for to < last {
		before, _ := utf8.DecodeLastRuneInString(s[:to])
		after, n := utf8.DecodeRuneInString(s[to:])
		if next, _ := utf8.DecodeRuneInString(s[to+n:]); (after == '\'' || after == '’') && unicode.IsLetter(before) && unicode.IsLetter(next) {
			n += utf8.RuneLen(next)
		} else if !isOneWord(before, after) {
			break
		}
		to += n
	}
	if from > 0 && s[from-1] == '&' {
		if end := strings.IndexByte(s[from:last], ';'); end > 0 && isAlphanumeric(s[from:from+end]) {
			from, to = from-1, max(to, from+end+1)
		}
	}
	return from, to
}

// apostropheBefore returns how many bytes a letter and an apostrophe at the end of s have, or 0.
func apostropheBefore(s string) int {
	r, n := utf8.DecodeLastRuneInString(s)
	letter, m := utf8.DecodeLastRuneInString(s[:len(s)-n])
	if r != '\'' && r != '’' || !unicode.IsLetter(letter) {
		return 0
	}
	return n + m
}

// isOneWord reports whether a and b, which stand next to each other, belong to one word.
func isOneWord(a, b rune) bool {
	inWord := func(r rune) bool {
		return unicode.Is(unicode.Hangul, r) || !isSingleCharacterScript(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r))
	}
	return inWord(a) && inWord(b)
}
