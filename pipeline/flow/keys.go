package flow

import (
	"encoding/binary"
	"slices"

	"github.com/vokter/vokter/pipeline"
)

// Keys are packed in runs: items that follow each other and are of one list, or that have no key. A run has the number
// of its items, twice, and one more if they have keys; then the list; then keyBytes bytes for each key.
const keyBytes = 3

// keyFrameMagic begins a frame that decoders of zstd skip.
var keyFrameMagic = []byte{0x50, 0x2a, 0x4d, 0x18}

// appendKeyFrame appends the frame with keys to b.
func appendKeyFrame(b []byte, keys []pipeline.Key) []byte {
	b = append(b, keyFrameMagic...)
	size := len(b)
	b = append(b, 0, 0, 0, 0)
	for i := 0; i < len(keys); {
		first, k := i, keys[i]
		for i < len(keys) && (keys[i] == 0) == (k == 0) && keys[i].List() == k.List() {
			i++
		}
		n := uint64(i-first) << 1
		if k == 0 {
			b = binary.AppendUvarint(b, n)
			continue
		}
		b = append(binary.AppendUvarint(b, n|1), k.List())
		for _, k := range keys[first:i] {
			b = append(b, byte(k>>16), byte(k>>8), byte(k))
		}
	}
	binary.LittleEndian.PutUint32(b[size:], uint32(len(b)-size-4))
	return b
}

// splitKeyFrame returns the content of the frame with keys, if packed begins with one, and what follows it.
func splitKeyFrame(packed []byte) (frame, rest []byte) {
	head := len(keyFrameMagic) + 4
	if len(packed) < head || !slices.Equal(packed[:len(keyFrameMagic)], keyFrameMagic) {
		return nil, packed
	}
	size := uint64(binary.LittleEndian.Uint32(packed[len(keyFrameMagic):]))
	if size > uint64(len(packed)-head) {
		return nil, packed
	}
	return packed[head : head+int(size)], packed[head+int(size):]
}

// UnpackKeys returns the keys of the items of a text that PackText packed. It is nil where they have none.
func UnpackKeys(packed []byte) []pipeline.Key {
	b, _ := splitKeyFrame(packed)
	var keys []pipeline.Key
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil
		}
		b = b[n:]
		count := v >> 1
		if v&1 == 0 {
			if count > pipeline.MaxText {
				return nil
			}
			keys = append(keys, make([]pipeline.Key, count)...)
			continue
		}
		if len(b) == 0 || count > uint64(len(b)-1)/keyBytes {
			return nil
		}
		list := pipeline.Key(b[0]) << (8 * keyBytes)
		b = b[1:]
		for range count {
			keys = append(keys, list|pipeline.Key(b[0])<<16|pipeline.Key(b[1])<<8|pipeline.Key(b[2]))
			b = b[keyBytes:]
		}
	}
	return keys
}
