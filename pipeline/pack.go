package pipeline

import (
	"github.com/klauspost/compress/zstd"
)

// MaxText is the largest text that a version may have, in bytes.
const MaxText = 2 << 20

// MaxUnpacked is the largest size of anything packed, once it is unpacked: two texts with their
// tokens, which take no more bytes than their text.
const MaxUnpacked = 4*MaxText + 64

// UnpackedSize returns how many bytes a packed text, body or snapshot has unpacked; 0 where its
// frame does not say.
func UnpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil || !h.HasFCS {
		return 0
	}
	return int64(min(h.FrameContentSize, MaxUnpacked))
}
