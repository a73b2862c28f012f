package diff

import (
	"encoding/binary"

	"golang.org/x/text/unicode/norm"

	"github.com/vokter/vokter/pipeline/text"
)

// border is the symbol behind each block. Tokens have positive symbols.
const border int32 = 0

// form is how tokens are compared.
type form int

const (
	folded form = iota // without case and marks: for grouping
	exact              // in Unicode's form C: for the differences
)

// symbols gives the tokens and units of both texts numbers: equal ones the same.
type symbols struct {
	tokens   map[string][2]int32 // by their exact text
	forms    [2]map[string]int32
	units    map[string]int32 // by their exact text
	unitKeys map[string]int32 // by their folded tokens and borders
}

func newSymbols() *symbols {
	return &symbols{
		tokens: make(map[string][2]int32), forms: [2]map[string]int32{{}, {}},
		units: make(map[string]int32), unitKeys: make(map[string]int32),
	}
}

func (s *symbols) token(raw string, f form) int32 {
	t, ok := s.tokens[raw]
	if !ok {
		t = [2]int32{
			folded: number(s.forms[folded], text.Fold(raw), 1),
			exact:  number(s.forms[exact], norm.NFC.String(raw), 1),
		}
		s.tokens[raw] = t
	}
	return t[f]
}

// unit returns the number of unit u of d. A unit is its folded tokens and the borders of its blocks.
func (s *symbols) unit(d *text.Doc, u int) int32 {
	raw := unitText(d, u)
	id, ok := s.units[raw]
	if !ok {
		var key []byte
		for _, x := range s.sequence(d, []int{u}, folded).symbols {
			key = binary.LittleEndian.AppendUint32(key, uint32(x))
		}
		id = number(s.unitKeys, string(key), 0)
		s.units[raw] = id
	}
	return id
}

// number returns what key is numbered in m, counting from first.
func number(m map[string]int32, key string, first int) int32 {
	n, ok := m[key]
	if !ok {
		n = int32(len(m) + first)
		m[key] = n
	}
	return n
}

// unitText is unit u as it stands in the text, with the marks between its blocks.
func unitText(d *text.Doc, u int) string {
	unit := d.Units[u]
	return d.Content[d.Blocks[unit.FirstBlock].Start:d.Blocks[unit.LastBlock-1].End]
}

// sequence is some units of one side as they are diffed: the symbols of their tokens
// and a border behind each block.
type sequence struct {
	symbols []int32
	blocks  []stretch
}

// stretch says where a block's tokens stand in a sequence.
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
