package diff

import "encoding/binary"

// A piece ends behind a symbol that, with the one before it, hashes to a multiple of
// pieceMean, so that an edit moves no cut but those next to it; and at pieceMax symbols.
const (
	pieceMean = 32
	pieceMax  = 512
)

// pieces aligns a and b coarsely: pieces that are equal are kept, what lies between is
// aligned by symbols where it is small enough. The cuts are for speed alone: an edit may
// cross them.
func (w *work) pieces(a, b []int32, most int64) []run {
	ids := make(map[string]int32)
	sa, enda := cut(a, ids)
	sb, endb := cut(b, ids)
	equal, _ := w.align(sa, sb, most, false)

	var kept []run
	i, j := 0, 0 // what lies before is done
	between := func(toA, toB int) {
		part, _ := w.align(a[i:toA], b[j:toB], most, false)
		for _, r := range part {
			kept = append(kept, run{i + r.a, j + r.b, r.n})
		}
	}
	for _, r := range equal {
		fromA, fromB := enda[r.a], endb[r.b]
		between(fromA, fromB)
		n := enda[r.a+r.n] - fromA
		kept = append(kept, run{fromA, fromB, n})
		i, j = fromA+n, fromB+n
	}
	between(len(a), len(b))
	return kept
}

// cut returns the pieces of s as symbols, and where they begin, with len(s) at the end.
func cut(s []int32, ids map[string]int32) (symbols []int32, begin []int) {
	var key []byte
	begin = append(begin, 0)
	for i, x := range s {
		key = binary.LittleEndian.AppendUint32(key, uint32(x))
		h := uint32(x) * 0x9E3779B1
		if i > 0 {
			h ^= uint32(s[i-1]) * 0x85EBCA77
		}
		h ^= h >> 15
		if h*0x2C1B3C6D>>16%pieceMean != 0 && i+1-begin[len(begin)-1] < pieceMax && i+1 < len(s) {
			continue
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(ids))
			ids[string(key)] = id
		}
		symbols, begin, key = append(symbols, id), append(begin, i+1), key[:0]
	}
	return symbols, begin
}
