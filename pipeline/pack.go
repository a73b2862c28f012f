package pipeline

import (
	"github.com/klauspost/compress/zstd"
)

// MaxText is the largest text that a version may have, in bytes.
const MaxText = 2 << 20

// UnpackedSize returns how many bytes packed, which PackText, PackTexts or PackBody made, has
// unpacked; 0 where it does not say.
func UnpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil || !h.HasFCS {
		return 0
	}
	return int64(min(h.FrameContentSize, 2*MaxText+64)) // no more than that is unpacked
}
