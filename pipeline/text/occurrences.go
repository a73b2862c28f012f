package text

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Occurrence is one token in a version: the bytes [Start, End) of its Content. Position
// counts tokens and the borders between blocks, so that neighbours within a block, and
// only they, have positions that differ by 1.
type Occurrence struct{ Position, Start, End int }

// packedFormat is the first byte of packed occurrences.
const packedFormat = 1

// wideGap is the least gap before a token that takes a number of its own.
const wideGap = 3

var errOccurrences = errors.New("text: damaged occurrences")

// PackOccurrences returns the tokens of d in little more than a byte each.
func PackOccurrences(d *Doc) []byte {
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

// UnpackOccurrences is the inverse of PackOccurrences, for the same content. It fails
// where b is damaged or belongs to another text.
func UnpackOccurrences(b []byte, content string) ([]Occurrence, error) {
	if len(b) == 0 || b[0] != packedFormat {
		return nil, errOccurrences
	}
	b = b[1:]
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
	if count > uint64(len(content)) {
		return nil, errOccurrences
	}
	out := make([]Occurrence, 0, count)
	end, position := 0, 0
	for i := range int(count) {
		v := next()
		gap, length := v&wideGap, v>>2
		if gap == wideGap {
			gap = next()
		}
		left := uint64(len(content) - end)
		if gap > left || length == 0 || length > left-gap {
			return nil, errOccurrences
		}
		o := Occurrence{Start: end + int(gap), End: end + int(gap+length)}
		if i > 0 && strings.ContainsAny(content[end:o.Start], marks) {
			position++ // the border
		}
		o.Position, end = position, o.End
		position++
		out = append(out, o)
	}
	if len(b) > 0 {
		return nil, errOccurrences
	}
	return out, nil
}
