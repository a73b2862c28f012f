package flow

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline"
)

// The coders are safe for concurrent use with EncodeAll and DecodeAll.
var (
	zstdEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
	zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(pipeline.MaxUnpacked), zstd.WithDecoderConcurrency(0))
)

// PackText compresses a text.
func PackText(text string) []byte { return zstdEncoder.EncodeAll([]byte(text), nil) }

// PackBody compresses the body of a page to be kept, as PackText does a text; UnpackText is
// the inverse. ok is false where it is too large: more than MaxStoredBody bytes packed, or
// more than twice MaxText unpacked.
func PackBody(body []byte) (packed []byte, ok bool) {
	if len(body) > 2*pipeline.MaxText {
		return nil, false
	}
	packed = zstdEncoder.EncodeAll(body, nil)
	return packed, len(packed) <= MaxStoredBody
}

// UnpackText is the inverse of PackText.
func UnpackText(packed []byte) (string, error) {
	b, err := zstdDecoder.DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("unpacking a text: %w", err)
	}
	return string(b), nil
}
