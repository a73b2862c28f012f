package flow

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline"
)

// The coders are safe for concurrent use with EncodeAll and DecodeAll.
var (
	zstdEncoder    = newEncoder()
	zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(0))
)

// newEncoder returns an encoder that was used once. It makes its channels then, which must not be in a bubble of
// testing/synctest: the next bubble could not use them.
func newEncoder() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
	e.EncodeAll(nil, nil)
	return e
}

// packBuffer is memory for packing that is used again, because packing a text takes several times the memory of
// its result.
type packBuffer struct{ in, out []byte }

// maxPackBuffer is the largest memory that is kept for that, in bytes.
const maxPackBuffer = 1 << 20

var packBuffers = sync.Pool{New: func() any { return new(packBuffer) }}

func (s *packBuffer) release() {
	if cap(s.in)+cap(s.out) <= maxPackBuffer {
		packBuffers.Put(s)
	}
}

// PackText compresses a text with the keys of its items, for UnpackText and UnpackKeys. The keys stand before the
// text in a skippable frame, as random as they are.
func PackText(text string, keys ...pipeline.Key) []byte {
	s := packBuffers.Get().(*packBuffer)
	defer s.release()
	s.in = append(s.in[:0], text...)
	if len(keys) == 0 {
		return s.pack(s.in)
	}
	s.out = zstdEncoder.EncodeAll(s.in, s.out[:0])
	return append(appendKeyFrame(make([]byte, 0, len(s.out)+keyBytes*len(keys)+64), keys), s.out...)
}

// pack compresses b, which may be s.in.
func (s *packBuffer) pack(b []byte) []byte {
	s.out = zstdEncoder.EncodeAll(b, s.out[:0])
	return bytes.Clone(s.out)
}

func packBytes(b []byte) []byte {
	s := packBuffers.Get().(*packBuffer)
	defer s.release()
	return s.pack(b)
}

// PackBody compresses the body of a page; UnpackText is the inverse. ok is false if it is too large
// to store: more than MaxStoredBody bytes packed, or more than twice MaxText unpacked.
func PackBody(body []byte) (packed []byte, ok bool) {
	if len(body) > 2*pipeline.MaxText {
		return nil, false
	}
	packed = packBytes(body)
	return packed, len(packed) <= MaxStoredBody
}

// UnpackText is the inverse of PackText.
func UnpackText(packed []byte) (string, error) {
	s := packBuffers.Get().(*packBuffer)
	defer s.release()
	var err error
	if s.out, err = zstdDecoder.DecodeAll(packed, s.out[:0]); err != nil {
		return "", fmt.Errorf("unpacking a text: %w", err)
	}
	return string(s.out), nil
}

// maxUnpacked bounds the unpacked size of anything: twice that of the largest body.
const maxUnpacked = 4*pipeline.MaxText + 64

// UnpackedSize returns the unpacked size of a packed text or body in bytes, or 0 if its zstd frame does
// not say it.
func UnpackedSize(packed []byte) int64 {
	_, packed = splitKeyFrame(packed)
	var h zstd.Header
	if h.Decode(packed) != nil || !h.HasFCS {
		return 0
	}
	return int64(min(h.FrameContentSize, maxUnpacked))
}
