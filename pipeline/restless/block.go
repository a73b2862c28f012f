package restless

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Block is a block of a text with the numbers in it.
type Block struct {
	// Text is the text of the block, which begins at Start.
	Text  string
	Start int
	// Shape names what the block is without its numbers. Blocks with the same shape have as many.
	Shape   uint64
	numbers []number
	// alone is the shape without a look at the blocks before. hasWords says that the block has more than numbers.
	alone    uint64
	hasWords bool
}

// Text is a text of which each block is read once, when it is asked for. It is not safe for concurrent use.
type Text struct {
	content string
	spans   []span
	blocks  []*Block // by span, nil where none was read
	pieces  []piece  // reused
}

// NewText returns the Text of content.
func NewText(content string) *Text {
	t := &Text{content: content, spans: appendBlocks(nil, content)}
	t.blocks = make([]*Block, len(t.spans))
	return t
}

// At returns the block that holds the byte at offset, or ends there. If there is none, it returns an empty one.
func (t *Text) At(offset int) *Block {
	i, found := slices.BinarySearchFunc(t.spans, offset, func(s span, offset int) int { return s.start - offset })
	if !found {
		i--
	}
	if i < 0 || offset > t.spans[i].end {
		return &Block{Start: offset}
	}
	return t.block(i)
}

// span returns the text of block i.
func (t *Text) span(i int) string { return t.content[t.spans[i].start:t.spans[i].end] }

// span is the block [start, end) of a text.
type span struct{ start, end int }

// appendBlocks appends the blocks of content that are not empty.
func appendBlocks(all []span, content string) []span {
	for start := 0; start < len(content); {
		end := len(content)
		if n := strings.IndexByte(content[start:], pipeline.BlockEnd); n >= 0 {
			end = start + n
		}
		for from := start; from < end; { // IndexByte looks at many bytes at once
			to := end
			for _, mark := range []byte{pipeline.ItemStart, pipeline.ItemEnd} {
				if n := strings.IndexByte(content[from:to], mark); n >= 0 {
					to = from + n
				}
			}
			if to > from {
				all = append(all, span{from, to})
			}
			from = to + 1
		}
		start = end + 1
	}
	return all
}

// block returns block i.
func (t *Text) block(i int) *Block {
	b := t.read(i)
	if b.Shape == 0 {
		if b.Shape = b.alone; !b.hasWords && len(b.numbers) > 0 { // "397" is what the blocks before it say
			b.Shape = t.hashLabel(b.alone, i)
		}
	}
	return b
}

// read returns block i without its shape.
func (t *Text) read(i int) *Block {
	if b := t.blocks[i]; b != nil {
		return b
	}
	b := &Block{Text: t.span(i), Start: t.spans[i].start}
	t.blocks[i] = b
	if !mayHoldNumber(b.Text) {
		b.alone, b.hasWords = hashString(offset64, b.Text), true
		return b
	}
	t.pieces = appendPieces(t.pieces[:0], b.Text)
	r := reader{s: b.Text, ps: t.pieces}
	b.alone = offset64
	for i := 0; i < len(r.ps); {
		if n, end, ok := r.next(i); ok {
			b.numbers = append(b.numbers, n)
			b.alone = hashByte(hashByte(b.alone, n.kind), 0)
			i = end
			continue
		}
		b.alone = hashByte(hashString(b.alone, r.text(i)), ' ')
		b.hasWords = b.hasWords || r.ps[i].kind == letters
		i++
	}
	return b
}

// maxLabelDistance is how many blocks before a number without words its label is looked for.
const maxLabelDistance = 12

// hashLabel adds to h the last block before block i that has a letter, without its numbers, and how many blocks lie
// between. So the numbers of a table have the shape of their row.
func (t *Text) hashLabel(h uint64, i int) uint64 {
	for k := i - 1; k >= 0 && i-k <= maxLabelDistance; k-- {
		h = hashByte(h, '<')
		if strings.ContainsFunc(t.span(k), unicode.IsLetter) { // in a run of ids each is the label of the next
			return h ^ t.read(k).alone*prime64
		}
	}
	return h
}

// mayHoldNumber reports whether s has a digit, or perhaps a time such as "an hour ago".
func mayHoldNumber(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c), c == ' ' && (endsWithAgo(s[:i]) || beginsWithAgo(s[i+1:])):
			return true
		case c >= utf8.RuneSelf && utf8.RuneStart(c):
			if r, _ := utf8.DecodeRuneInString(s[i:]); unicode.IsNumber(r) {
				return true
			}
		}
	}
	return false
}

// endsWithAgo reports whether s ends with a word that stands before a time without a digit that articleAt reads, such
// as "vor einer Stunde" and "il y a une heure".
func endsWithAgo(s string) bool {
	if s == "" {
		return false
	}
	switch s[len(s)-1] {
	case 'r':
		return strings.HasSuffix(s, "vor") || strings.HasSuffix(s, "Vor")
	case 'e':
		return strings.HasSuffix(s, "ace")
	case 'a':
		return strings.HasSuffix(s, "y a")
	}
	return strings.HasSuffix(s, "há") || strings.HasSuffix(s, "Há")
}

// beginsWithAgo reports whether s begins with a word that stands behind such a time, as in "an hour ago".
func beginsWithAgo(s string) bool {
	if s == "" {
		return false
	}
	switch s[0] {
	case 'a':
		return strings.HasPrefix(s, "ago") || strings.HasPrefix(s, "atrás")
	case 'f':
		return strings.HasPrefix(s, "fa")
	case 'g':
		return strings.HasPrefix(s, "geleden")
	case 's':
		return strings.HasPrefix(s, "sedan") || strings.HasPrefix(s, "siden")
	}
	return false
}

// FNV-1a, which is the same in every process: shapes are stored.
const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

func hashByte(h uint64, c byte) uint64 { return (h ^ uint64(c)) * prime64 }

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime64
	}
	return h
}

// value returns number i as it is written.
func (b *Block) value(i int) string { return b.Text[b.numbers[i].start:b.numbers[i].end] }

// place returns the Place of number i.
func (b *Block) place(i int) Place { return Place{b.Shape, i} }
