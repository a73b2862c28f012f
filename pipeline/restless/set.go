package restless

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"
)

// Set holds the places of a document that are restless.
type Set map[Place]bool

// Pack returns s as bytes; nil if it is empty.
func (s Set) Pack() []byte {
	if len(s) == 0 {
		return nil
	}
	b := make([]byte, 0, 9*len(s))
	for _, p := range s.sorted() {
		b = binary.BigEndian.AppendUint64(b, p.Shape)
		b = binary.AppendUvarint(b, uint64(p.Nth))
	}
	return b
}

func (s Set) sorted() []Place {
	return slices.SortedFunc(maps.Keys(s), func(a, b Place) int {
		if a.Shape != b.Shape {
			if a.Shape < b.Shape {
				return -1
			}
			return 1
		}
		return a.Nth - b.Nth
	})
}

// UnpackSet is the inverse of Set.Pack.
func UnpackSet(b []byte) (Set, error) {
	s := make(Set)
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, errPacked
		}
		shape := binary.BigEndian.Uint64(b)
		nth, n := binary.Uvarint(b[8:])
		if n <= 0 || nth > 1<<20 {
			return nil, errPacked
		}
		s[Place{shape, int(nth)}], b = true, b[8+n:]
	}
	return s, nil
}

var errPacked = errors.New("the restless places of a text are damaged")

// Mutes reports whether the difference between two blocks is muted, as far as it lies in the ranges from and
// to of bytes of their texts. learned says that it lies in places of s, and not only in times that
// passed. between is the time between the texts.
func (s Set) Mutes(old, new *Block, from, to [2]int, between time.Duration) (muted, learned bool) {
	if old.Shape != new.Shape || len(old.numbers) != len(new.numbers) {
		return false, false
	}
	within := func(n number, b *Block, r [2]int) bool { return b.Start+n.start < r[1] && b.Start+n.end > r[0] }
	for i := range new.numbers {
		x, y := old.numbers[i], new.numbers[i]
		if old.value(i) == new.value(i) || !within(x, old, from) && !within(y, new, to) {
			continue
		}
		switch {
		case y.kind == kindMoney:
			return false, false
		case explains(between, x, y):
			muted = true
		case s[new.place(i)]:
			muted, learned = true, true
		default:
			return false, false
		}
	}
	return muted, learned
}

// Hash returns the hash of content with its restless numbers blanked, and its times such as "5
// minutes ago". Texts that differ in these alone have the same one.
func (s Set) Hash(content string) string {
	h := sha256.New()
	t := NewText(content)
	buf := make([]byte, 0, 512)
	for i := range t.spans {
		b := t.read(i)
		buf = append(buf[:0], '\n')
		from := 0
		for k, n := range b.numbers {
			if n.age > 0 || len(s) > 0 && s[t.block(i).place(k)] {
				buf = append(append(buf, b.Text[from:n.start]...), '#')
				from = n.end
			}
		}
		h.Write(append(buf, b.Text[from:]...))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// covers reports whether blocks with a place of s take up at least half of content.
func (s Set) covers(content *Text) bool {
	n, all := 0, 0
	for i, at := range content.spans {
		length := at.end - at.start
		all += length
		b := content.block(i)
		for k := range b.numbers {
			if s[b.place(k)] {
				n += length
				break
			}
		}
	}
	return 2*n >= all
}

// Labels shows the places of s in content, up to most, each by its block with the number in brackets.
func (s Set) Labels(content string, most int) []string { return NewText(content).labels(s, most) }
