package flow

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestPackedKeys(t *testing.T) {
	content := strings.Repeat("text ", 200) + "\n"
	a, b := pipeline.NewKey("list", "/a"), pipeline.NewKey("other", "/b")
	for _, keys := range [][]pipeline.Key{nil, {a}, {0, a}, {a, pipeline.NewKey("list", "/c"), 0, 0, b, b}, make([]pipeline.Key, 1000)} {
		packed := PackText(content, keys...)
		if got := UnpackKeys(packed); !slices.Equal(got, keys) {
			t.Errorf("got the keys %x, want %x", got, keys)
		}
		if got, err := UnpackText(packed); err != nil || got != content || UnpackedSize(packed) != int64(len(content)) {
			t.Errorf("got the text %.20q, %v, of %d bytes", got, err, UnpackedSize(packed))
		}
	}
	// Damaged keys are none.
	packed := PackText("text\n", a, b)
	for i := range packed {
		UnpackKeys(packed[:i])
		damaged := slices.Clone(packed)
		damaged[i] ^= 0xff
		UnpackKeys(damaged)
	}
}
