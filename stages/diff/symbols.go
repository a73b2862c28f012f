package diff

import (
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/text"
)

// border is the symbol after each block. Tokens have positive symbols.
const border int32 = 0

// tokenForm is how tokens are compared.
type tokenForm int

const (
	foldedForm tokenForm = iota // without case and marks: for grouping
	exactForm                   // in their plain form, with case and marks: for the differences
)

// symbolTable numbers the tokens and units of both texts. Equal ones get the same number.
type symbolTable struct {
	tokens      [2]map[string]int32 // by form, by the token in this form
	folds       map[string]string   // the folded forms of tokens for which folding is work
	unitsByText map[string]int32    // by their exact text, so that each is folded once
	unitNumbers map[string]int32    // by their folded tokens and borders
	keyBuffer   []byte              // reused by unitNumber
}

func newSymbolTable() *symbolTable {
	return &symbolTable{
		tokens: [2]map[string]int32{{}, {}}, folds: make(map[string]string),
		unitsByText: make(map[string]int32), unitNumbers: make(map[string]int32),
	}
}

// tokenNumber returns the number of the token raw in form f. Equal tokens have equal numbers.
func (s *symbolTable) tokenNumber(raw string, f tokenForm) int32 {
	var key string
	if f == foldedForm {
		key = s.fold(raw)
	} else {
		key = text.PlainForm(raw)
	}
	id, ok := s.tokens[f][key]
	if !ok {
		id = int32(len(s.tokens[f])) + border + 1
		s.tokens[f][key] = id
	}
	return id
}

// knownToken returns the number of the folded form of raw, if it has one.
func (s *symbolTable) knownToken(raw string) (int32, bool) {
	id, ok := s.tokens[foldedForm][s.fold(raw)]
	return id, ok
}

// fold is text.Fold, with a cache for tokens that are not ASCII, for which text.Fold is slow.
func (s *symbolTable) fold(raw string) string {
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

// unitNumber returns the number of unit u of d. Units with equal folded tokens and borders have equal
// numbers.
func (s *symbolTable) unitNumber(d *text.Doc, u int) int32 {
	raw := unitText(d, u)
	id, ok := s.unitsByText[raw]
	if ok {
		return id
	}
	// No token holds a control character.
	const endOfToken, endOfBlock = 0, 1
	key := s.keyBuffer[:0]
	for _, b := range d.Blocks[d.Units[u].FirstBlock:d.Units[u].LastBlock] {
		for t := b.First; t < b.Last; t++ {
			key = append(append(key, s.fold(d.Text(t))...), endOfToken)
		}
		key = append(key, endOfBlock)
	}
	s.keyBuffer = key
	if id, ok = s.unitNumbers[string(key)]; !ok {
		id = int32(len(s.unitNumbers))
		s.unitNumbers[string(key)] = id
	}
	s.unitsByText[raw] = id
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
	blocks  []blockSpan
}

// blockSpan says where a block's tokens are in a sequence.
type blockSpan struct {
	block int // in Doc.Blocks
	unit  int // in the units that the sequence was made of
	first int // its tokens are symbols[first:last], its border symbols[last]
	last  int
}

// newSequence returns the given units of d as a sequence of tokens in form f.
func (s *symbolTable) newSequence(d *text.Doc, units []int, f tokenForm) sequence {
	n := 0
	for _, u := range units {
		n += countUnitTokens(d, u) + d.Units[u].LastBlock - d.Units[u].FirstBlock
	}
	q := sequence{symbols: make([]int32, 0, n)}
	for i, u := range units {
		for b := d.Units[u].FirstBlock; b < d.Units[u].LastBlock; b++ {
			first := len(q.symbols)
			for t := d.Blocks[b].First; t < d.Blocks[b].Last; t++ {
				q.symbols = append(q.symbols, s.tokenNumber(d.Text(t), f))
			}
			q.blocks = append(q.blocks, blockSpan{block: b, unit: i, first: first, last: len(q.symbols)})
			q.symbols = append(q.symbols, border)
		}
	}
	return q
}

// countUnitTokens is how many tokens unit u of d has.
func countUnitTokens(d *text.Doc, u int) int {
	return d.Blocks[d.Units[u].LastBlock-1].Last - d.Blocks[d.Units[u].FirstBlock].First
}
