package restless

import (
	"strings"
	"sync"
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
}

// isMark reports whether c ends a block.
func isMark(c byte) bool {
	return c <= pipeline.BlockEnd && (c == pipeline.BlockEnd || c == pipeline.ItemStart || c == pipeline.ItemEnd)
}

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

// BlockAt reads the block of content that holds the byte at offset.
func BlockAt(content string, offset int) Block {
	start, end := offset, offset
	for start > 0 && !isMark(content[start-1]) {
		start--
	}
	for end < len(content) && !isMark(content[end]) {
		end++
	}
	return readBlock(content, span{start, end})
}

var pieceBuffers = sync.Pool{New: func() any { return new([]piece) }}

// readBlock reads a block of content.
func readBlock(content string, at span) Block {
	b, words := readAlone(content, at)
	if !words && len(b.numbers) > 0 { // "397" is what the blocks before it say
		b.Shape = hashLabel(b.Shape, content, at.start)
	}
	return b
}

// readAlone reads a block of content without a look at those before it. words says that it has more than numbers.
func readAlone(content string, at span) (b Block, words bool) {
	b = Block{Text: content[at.start:at.end], Start: at.start}
	if !mayHoldNumber(b.Text) {
		b.Shape = hashString(offset64, b.Text)
		return b, true
	}
	buffer := pieceBuffers.Get().(*[]piece)
	r := reader{s: b.Text, ps: appendPieces((*buffer)[:0], b.Text)}
	h := uint64(offset64)
	for i := 0; i < len(r.ps); {
		if n, end, ok := r.next(i); ok {
			b.numbers = append(b.numbers, n)
			h = hashByte(hashByte(h, n.kind), 0)
			i = end
			continue
		}
		h = hashByte(hashString(h, r.text(i)), ' ')
		words = words || r.ps[i].kind == letters
		i++
	}
	b.Shape = h
	*buffer = r.ps[:0]
	pieceBuffers.Put(buffer)
	return b, words
}

// maxLabelDistance is how many blocks before a number without words its label is looked for.
const maxLabelDistance = 12

// hashLabel adds to h the last block before start that has a word, without its numbers, and how many blocks lie
// between. So the numbers of a table have the shape of their row.
func hashLabel(h uint64, content string, start int) uint64 {
	for range maxLabelDistance {
		end := start
		for end > 0 && isMark(content[end-1]) {
			end--
		}
		for start = end; start > 0 && !isMark(content[start-1]); {
			start--
		}
		if start == end {
			break
		}
		h = hashByte(h, '<')
		if label := content[start:end]; strings.ContainsFunc(label, unicode.IsLetter) {
			b, _ := readAlone(content, span{start, end}) // in a run of ids each is the label of the next
			return h ^ b.Shape*prime64
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
