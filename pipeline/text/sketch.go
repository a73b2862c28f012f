package text

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Sketch is a summary of fixed size by which the similarity of two texts is estimated, without
// the texts. It is a MinHash of their shingles, which are the runs of three tokens, as they are
// written. Two sketches agree in as large a share of their values as the texts have shingles in
// common, with a standard error of about 0.04, in short texts up to 0.08.
type Sketch [sketchValues]uint32

const (
	sketchValues  = 128
	sketchFormat  = 2 // the first byte of a stored sketch
	shingleLength = 3 // tokens
	// minShingles is how many shingles a text must have for a sketch. Fewer say too little.
	minShingles = 50

	// SketchBands is how many bands Sketch.Bands returns, of sketchRows values each. Texts that
	// have 80 % of their shingles in common share a band with a probability of 95 %, those that
	// have 50 % with 6 %.
	SketchBands = 16
	sketchRows  = sketchValues / SketchBands
)

// NewSketch returns the sketch of d. It returns ok false where d has fewer than 52 tokens: such
// texts are compared as they are.
func NewSketch(d *Doc) (s Sketch, ok bool) {
	if len(d.Tokens) < minShingles+shingleLength-1 {
		return s, false
	}
	var used [sketchValues]bool
	var a, b uint64 // the hashes of the two tokens before
	for i := range d.Tokens {
		c := xxhash.Sum64String(d.Text(i))
		if i >= shingleLength-1 {
			h := mixHash(a ^ bits.RotateLeft64(b, 21) ^ bits.RotateLeft64(c, 42))
			at, v := h%sketchValues, uint32(h>>32)
			if !used[at] || v < s[at] {
				used[at], s[at] = true, v
			}
		}
		a, b = b, c
	}
	// A value that no shingle fell on is taken from another one, which texts with the same
	// shingles choose alike.
	filled := s
	for i := range s {
		for n := uint64(0); !used[i]; n++ {
			if from := mixHash(uint64(i)<<32|n) % sketchValues; used[from] {
				filled[i] = s[from]
				break
			}
		}
	}
	return filled, true
}

// mixHash is the finalizer of SplitMix64.
func mixHash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Similarity estimates which share of the shingles of two texts they have in common, from 0 to 1.
func (s *Sketch) Similarity(other *Sketch) float64 {
	same := 0
	for i, v := range s {
		if v == other[i] {
			same++
		}
	}
	return float64(same) / sketchValues
}

// Bands returns hashes of parts of s, each of another part. Similar texts have at least one of
// them in common, so that they are found without comparing every pair.
func (s *Sketch) Bands() (bands [SketchBands]uint64) {
	for i := range bands {
		h := uint64(i)
		for _, v := range s[i*sketchRows : (i+1)*sketchRows] {
			h = mixHash(h ^ uint64(v))
		}
		bands[i] = h
	}
	return bands
}

// Pack returns s in 513 bytes.
func (s *Sketch) Pack() []byte {
	b := make([]byte, 1, 1+4*sketchValues)
	b[0] = sketchFormat
	for _, v := range s {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// UnpackSketch returns the sketch that Pack packed. It returns ok false where packed is not one
// that this program makes.
func UnpackSketch(packed []byte) (s Sketch, ok bool) {
	if len(packed) != 1+4*sketchValues || packed[0] != sketchFormat {
		return s, false
	}
	for i := range s {
		s[i] = binary.LittleEndian.Uint32(packed[1+4*i:])
	}
	return s, true
}
