package text

import (
	"encoding/binary"
	"slices"
)

// packedFormat is the first byte of packed tokens. It takes another value whenever they are
// packed in another way, and whenever Tokens finds other tokens in the same text: tokens that
// another program packed are then found again instead of being compared with different ones.
const packedFormat = 1

// wideGap is the smallest gap before a token that takes a number of its own.
const wideGap = 3

// PackTokens returns where the tokens of d stand in its Content, in little more than a byte for
// each token and never in more bytes than Content has, but for a header of at most 11.
func PackTokens(d *Doc) []byte {
	b := make([]byte, 0, len(d.Tokens)*5/4+8)
	b = append(b, packedFormat)
	b = binary.AppendUvarint(b, uint64(len(d.Tokens)))
	end := 0
	for _, t := range d.Tokens {
		gap := t.Start - end
		b = binary.AppendUvarint(b, uint64(t.End-t.Start)<<2|uint64(min(gap, wideGap)))
		if gap >= wideGap {
			b = binary.AppendUvarint(b, uint64(gap))
		}
		end = t.End
	}
	return b
}

// AnalyzePacked returns what Analyze does. It reads the tokens of content from packed, which
// PackTokens made, instead of finding them. Where packed is empty, has the format of another
// program, or cannot be the tokens of content, it finds them as Analyze does.
func AnalyzePacked(content string, packed []byte) *Doc {
	if d, ok := unpack(content, packed); ok {
		return d
	}
	return Analyze(content)
}

// unpack returns the Doc of content with the tokens of packed; ok is false where they cannot be
// its tokens.
func unpack(content string, packed []byte) (d *Doc, ok bool) {
	tokens, ok := unpackTokens(packed, len(content))
	if !ok {
		return nil, false
	}
	d = &Doc{Content: content}
	next := 0
	d.layOut(func(start, end int) {
		for ; next < len(tokens) && tokens[next].Start < end; next++ {
			ok = ok && tokens[next].Start >= start && tokens[next].End <= end
		}
		d.Tokens = tokens[:next]
	})
	return d, ok && next == len(tokens)
}

// unpackTokens returns the tokens of packed, in order and within a text of size bytes; ok is
// false where they are not.
func unpackTokens(packed []byte, size int) (tokens []Token, ok bool) {
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
		gap, length := v&wideGap, v>>2
		if gap == wideGap {
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
