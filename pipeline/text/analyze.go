// Package text defines what a word is: blocks, tokens, languages, stemmers and stop words.
// The stages index, diff and match share it, so that they read a text in the same way.
//
// A token is a word of Unicode's UAX #29, with some rules of this package (see Tokens). The
// tokens of a text do not depend on its language. What a token is compared as does: a
// Normalizer returns that for one language.
package text

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/vokter/vokter/pipeline"
)

// Version names the rules by which this package finds words and compares them. It changes
// whenever a text has other tokens, or a token another term or significance: what was made with
// other rules is then made again instead of being compared.
const Version = "text/2"

// MaxItem is how many tokens an item of several blocks may have to be one unit.
const MaxItem = 40

// maxKeyedItem is how many tokens an item may have for its blocks to have its key.
const maxKeyedItem = 200

// Doc is a text as it is compared: its tokens, the blocks that hold them, and the
// units of blocks that grouping compares.
type Doc struct {
	// Content is the text. The offsets of tokens and blocks are bytes of it.
	Content string
	// Tokens are its words, numbers and signs, in order.
	Tokens []Token
	// Blocks are those that have a token, in order; every token is in exactly one.
	Blocks []Block
	// Units cover Blocks in order, each block in exactly one.
	Units []Unit
	// LongItems are the items of several units, in order: those of more than MaxItem tokens beside which stands
	// another one of their list. They hold no other such item.
	LongItems []Unit
}

// Block is a paragraph, heading, cell, list item or line: the bytes [Start, End) of the
// text, without marks; the tokens [First, Last); and the index of its unit.
type Block struct {
	Start, End  int
	First, Last int
	Unit        int
}

// Unit is what grouping counts as one block: the blocks [FirstBlock, LastBlock). It is an item, or a
// block.
type Unit struct {
	FirstBlock, LastBlock int
	// Key is that of the item that the unit is, or that the block stands in; 0 if there is none.
	Key pipeline.Key
	// Item says that the unit is an item.
	Item bool
}

// Bytes is how much memory d takes beside its Content.
func (d *Doc) Bytes() int {
	const word = 8
	return word * (2*cap(d.Tokens) + 5*cap(d.Blocks) + 4*(cap(d.Units)+cap(d.LongItems)))
}

// maxPooledMemory is the largest memory that Release keeps, in bytes.
const maxPooledMemory = 1 << 20

var docPool = sync.Pool{New: func() any { return new(Doc) }}

// newDoc returns the Doc of content without tokens, blocks and units.
func newDoc(content string) *Doc {
	d := docPool.Get().(*Doc)
	*d = Doc{Content: content, Tokens: d.Tokens[:0], Blocks: d.Blocks[:0], Units: d.Units[:0], LongItems: d.LongItems[:0]}
	return d
}

// Release gives the memory of d to a later text. Nobody may use d any more.
func (d *Doc) Release() {
	if d.Content = ""; d.Bytes() <= maxPooledMemory {
		docPool.Put(d)
	}
}

// Text returns token i as it stands in the text.
func (d *Doc) Text(i int) string { return d.Content[d.Tokens[i].Start:d.Tokens[i].End] }

func (d *Doc) blockText(b int) string { return d.Content[d.Blocks[b].Start:d.Blocks[b].End] }

// Title returns what names unit: what is labelled so, such as "title: Lamp" of JSON, its first block that is no
// number, such as "3." or "id: 3", and no code before a block of several words, or its first one.
func (d *Doc) Title(unit Unit) string {
	for b := unit.FirstBlock; b < unit.LastBlock; b++ {
		switch label, value, _ := strings.Cut(d.blockText(b), ": "); label {
		case "title", "name", "headline", "subject":
			if value != "" {
				return value
			}
		}
	}
	code := ""
	for b := unit.FirstBlock; b < unit.LastBlock; b++ {
		block := d.blockText(b)
		value := d.Text(d.Blocks[b].First)
		if _, v, labelled := strings.Cut(block, ": "); labelled && v != "" {
			value = v
		} else if code == "" && isCode(block) {
			code = block
			continue
		}
		if value[0] < '0' || value[0] > '9' {
			if code != "" && d.Blocks[b].Last-d.Blocks[b].First == 1 {
				return code
			}
			return block
		}
	}
	return cmp.Or(code, d.blockText(unit.FirstBlock))
}

// isCode reports whether s is what a thing is known by in place of a name, such as the SKU L1: it begins with a letter
// and has digits, no blank nor point, and no three small letters in a row, as in iPhone15.
func isCode(s string) bool {
	small := 0
	for _, r := range s {
		if small++; !unicode.IsLower(r) {
			small = 0
		}
		if small == 3 || r == ' ' || r == '.' {
			return false
		}
	}
	return (s[0] < '0' || s[0] > '9') && strings.ContainsAny(s, "0123456789")
}

// Analyze reads content, a pipeline.Text's Content: blocks end with pipeline.BlockEnd, and items stand between
// pipeline.ItemStart and pipeline.ItemEnd. It takes any string: a mark ends a block too, an item end without a
// start is passed over, and what is open at the end ends there.
func Analyze(content string) *Doc { return analyze(content, nil) }

func analyze(content string, keys []pipeline.Key) *Doc {
	d := newDoc(content)
	d.Tokens = slices.Grow(d.Tokens, estimateTokens(content))
	d.layOut(keys, func(start, end int) { d.Tokens = appendTokens(d.Tokens, content, start, end) })
	return d
}

// estimateTokens returns about how many words content has: nearly all stand behind a space or a mark.
func estimateTokens(content string) int {
	return max(strings.Count(content, " ")+strings.Count(content, string(pipeline.BlockEnd)), len(content)/8) + 1
}

// AnalyzeValue is Analyze for a document that is a pipeline.Value: each block is one token. So a value that
// changes only by a sign or a symbol, such as from "-5" to "5", changes by a token.
func AnalyzeValue(content string) *Doc {
	d := newDoc(content)
	d.layOut(nil, func(start, end int) { d.Tokens = append(d.Tokens, Token{start, end}) })
	return d
}

// eachBlock calls block for every stretch of content between marks, empty ones left
// out, and mark for every mark, in order.
func eachBlock(content string, block func(start, end int), mark func(byte)) {
	for start := 0; start < len(content); {
		end := start
		for end < len(content) && !isMark(content[end]) {
			end++
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

func isMark(c byte) bool {
	return c <= pipeline.BlockEnd && (c == pipeline.BlockEnd || c == pipeline.ItemStart || c == pipeline.ItemEnd)
}

// appendVisible appends to b, which is empty, what a reader sees of content, a pipeline.Text's Content: the blocks,
// joined by "\n", without marks. Blocks without text are left out.
func appendVisible(b []byte, content string) []byte {
	b = slices.Grow(b, len(content))
	eachBlock(content, func(start, end int) {
		s := content[start:end]
		if strings.TrimSpace(s) == "" {
			return
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, s...)
	}, func(byte) {})
	return b
}

// Hash is the hash of a text by which versions are told apart, whatever its marks:
// SHA-256 of what a reader sees of it, in hexadecimal.
func Hash(content string) string {
	b := hashBufferPool.Get().(*[]byte)
	*b = appendVisible((*b)[:0], content)
	h := sha256.Sum256(*b)
	if cap(*b) <= maxPooledMemory {
		hashBufferPool.Put(b)
	}
	return hex.EncodeToString(h[:])
}

var hashBufferPool = sync.Pool{New: func() any { return new([]byte) }}

// packedFormat is the first byte of packed tokens. It takes another value whenever they are
// packed in another way, and whenever Tokens finds other tokens in the same text: tokens that
// another program packed are then found again instead of being compared with different ones.
const packedFormat = 3

// minWideGap is the smallest gap before a token that takes a number of its own.
const minWideGap = 3

// PackTokens returns where the tokens of d stand in its Content, in little more than a byte for
// each token and never in more bytes than Content has, but for a header of at most 11.
func PackTokens(d *Doc) []byte {
	b := make([]byte, 0, len(d.Tokens)*5/4+8)
	b = append(b, packedFormat)
	b = binary.AppendUvarint(b, uint64(len(d.Tokens)))
	end := 0
	for _, t := range d.Tokens {
		gap := t.Start - end
		b = binary.AppendUvarint(b, uint64(t.End-t.Start)<<2|uint64(min(gap, minWideGap)))
		if gap >= minWideGap {
			b = binary.AppendUvarint(b, uint64(gap))
		}
		end = t.End
	}
	return b
}

// AnalyzePacked returns what Analyze does, with the keys of the items: see pipeline.Text. It reads the tokens
// of content from packed, which PackTokens made, instead of finding them. Where packed is empty, has the
// format of another program, or cannot be the tokens of content, it finds them as Analyze does.
func AnalyzePacked(content string, keys []pipeline.Key, packed []byte) *Doc {
	if d, ok := unpackDoc(content, keys, packed); ok {
		return d
	}
	return analyze(content, keys)
}

// unpackDoc returns the Doc of content with the tokens of packed; ok is false where they cannot be
// its tokens.
func unpackDoc(content string, keys []pipeline.Key, packed []byte) (d *Doc, ok bool) {
	d = newDoc(content)
	tokens, ok := unpackTokens(d.Tokens, packed, len(content))
	if !ok {
		return nil, false
	}
	next := 0
	d.layOut(keys, func(start, end int) {
		for ; next < len(tokens) && tokens[next].Start < end; next++ {
			ok = ok && tokens[next].Start >= start && tokens[next].End <= end
		}
		d.Tokens = tokens[:next]
	})
	return d, ok && next == len(tokens)
}

// unpackTokens appends the tokens of packed to tokens, which is empty, in order and within a text of size bytes; ok is
// false where they are not.
func unpackTokens(tokens []Token, packed []byte, size int) (_ []Token, ok bool) {
	if len(packed) == 0 || packed[0] != packedFormat {
		return nil, false
	}
	b := packed[1:]
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return 1 << 63 // larger than any text
		}
		b = b[n:]
		return v
	}
	count := next()
	if count > uint64(size) {
		return nil, false
	}
	tokens = slices.Grow(tokens, int(count))
	end := 0
	for range count {
		v := next()
		gap, length := v&minWideGap, v>>2
		if gap == minWideGap {
			gap = next()
		}
		left := uint64(size - end)
		if gap > left || length == 0 || length > left-gap {
			return nil, false
		}
		start := end + int(gap)
		end = start + int(length)
		tokens = append(tokens, Token{start, end})
	}
	return tokens, len(b) == 0
}
