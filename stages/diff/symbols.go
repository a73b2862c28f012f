package diff

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/vokter/vokter/pipeline/text"
)

// border is the symbol after each block. Tokens have positive symbols.
const border int32 = 0

// form is how tokens are compared.
type form int

const (
	folded form = iota // without case and marks: for grouping
	exact              // in Unicode's form C: for the differences
)

// symbols numbers the tokens and units of both texts. Equal ones get the same number.
type symbols struct {
	tokens [2]map[string]int32 // by form, by the token in this form
	folds  map[string]string   // the folded forms of tokens for which folding is work
	units  map[string]int32    // by their exact text, so that each is folded once
	keys   map[string]int32    // by their folded tokens and borders
	key    []byte              // scratch
}

func newSymbols() *symbols {
	return &symbols{
		tokens: [2]map[string]int32{{}, {}}, folds: make(map[string]string),
		units: make(map[string]int32), keys: make(map[string]int32),
	}
}

func (s *symbols) token(raw string, f form) int32 {
	var key string
	if f == folded {
		key = s.fold(raw)
	} else {
		key = norm.NFC.String(raw)
	}
	id, ok := s.tokens[f][key]
	if !ok {
		id = int32(len(s.tokens[f])) + border + 1
		s.tokens[f][key] = id
	}
	return id
}

// fold is text.Fold, with a cache for tokens that are not ASCII, for which text.Fold is slow.
func (s *symbols) fold(raw string) string {
	for i := range len(raw) {
		if raw[i] < utf8.RuneSelf {
			continue
		}
		f, ok := s.folds[raw]
		if !ok {
			f = text.Fold(raw)
			s.folds[raw] = f
		}
		return f
	}
	return text.Fold(raw)
}

// unit returns the number of unit u of d. Units with equal folded tokens and borders have equal
// numbers.
func (s *symbols) unit(d *text.Doc, u int) int32 {
	raw := unitText(d, u)
	id, ok := s.units[raw]
	if ok {
		return id
	}
	// No token holds a control character.
	const endOfToken, endOfBlock = 0, 1
	key := s.key[:0]
	for _, b := range d.Blocks[d.Units[u].FirstBlock:d.Units[u].LastBlock] {
		for t := b.First; t < b.Last; t++ {
			key = append(append(key, s.fold(d.Text(t))...), endOfToken)
		}
		key = append(key, endOfBlock)
	}
	s.key = key
	if id, ok = s.keys[string(key)]; !ok {
		id = int32(len(s.keys))
		s.keys[string(key)] = id
	}
	s.units[raw] = id
	return id
}

// unitText is the text of unit u, with the separators between its blocks.
func unitText(d *text.Doc, u int) string {
	unit := d.Units[u]
	return d.Content[d.Blocks[unit.FirstBlock].Start:d.Blocks[unit.LastBlock-1].End]
}

// sequence is units of one side as input for a diff: the symbols of their tokens, with a border
// after each block.
type sequence struct {
	symbols []int32
	blocks  []stretch
}

// stretch says where a block's tokens are in a sequence.
type stretch struct {
	block int // in Doc.Blocks
	unit  int // in the units that the sequence was made of
	first int // its tokens are symbols[first:last], its border symbols[last]
	last  int
}

func (s *symbols) sequence(d *text.Doc, units []int, f form) sequence {
	n := 0
	for _, u := range units {
		n += unitTokens(d, u) + d.Units[u].LastBlock - d.Units[u].FirstBlock
	}
	q := sequence{symbols: make([]int32, 0, n)}
	for i, u := range units {
		for b := d.Units[u].FirstBlock; b < d.Units[u].LastBlock; b++ {
			first := len(q.symbols)
			for t := d.Blocks[b].First; t < d.Blocks[b].Last; t++ {
				q.symbols = append(q.symbols, s.token(d.Text(t), f))
			}
			q.blocks = append(q.blocks, stretch{block: b, unit: i, first: first, last: len(q.symbols)})
			q.symbols = append(q.symbols, border)
		}
	}
	return q
}

// unitTokens is how many tokens unit u of d has.
func unitTokens(d *text.Doc, u int) int {
	return d.Blocks[d.Units[u].LastBlock-1].Last - d.Blocks[d.Units[u].FirstBlock].First
}
