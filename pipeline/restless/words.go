package restless

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// The rule for words, which are muted only where a subscription asks for it: a place is restless if each of its
// last wordsBeginAt changes came at the check behind the change before, until fewer than half of its last changes
// did so.
const (
	wordsBeginAt = 5
	maxKnown     = 16   // changes of a place, as Rotation.Gaps has bits
	knownToEnd   = 8    // changes that must be known before it can end
	wordsStand   = 2000 // checks without a change, after which a restless place is forgotten
	maxRotations = 16   // of a Table
	maxSeen      = 32   // blocks of a place that are remembered
	lastExtents  = 3    // changes that say where a place is
	lastSizes    = 8
	maxStretches = 64 // more at one check are another text
)

// Rotation is a place whose words change: some blocks, such as a banner or recommendations, or some words of one.
type Rotation struct {
	// Extents are where its last changes were in the text of the last check, the latest first.
	Extents []Extent `cbor:"1,keyasint"`
	// Last is the check of its last change. Gaps has a bit for each of the changes before, the latest the lowest:
	// 1 where the next change came at the next check. Known is how many bits that are.
	Last  uint64 `cbor:"2,keyasint"`
	Gaps  uint16 `cbor:"3,keyasint,omitempty"`
	Known int    `cbor:"4,keyasint,omitempty"`
	// Seen are the hashes of the last blocks that it had, and Fresh has a bit for each of its last changes that brought
	// blocks: 1 where one of them was not among Seen. Grew has one for each change: 1 where the place kept what it had.
	Seen  []uint64 `cbor:"5,keyasint,omitempty"`
	Fresh uint8    `cbor:"6,keyasint,omitempty"`
	Grew  uint8    `cbor:"7,keyasint,omitempty"`
	// Sizes are how many blocks came with its last changes, the latest first.
	Sizes []int `cbor:"8,keyasint,omitempty"`
	// Money has a bit for each of its last changes: 1 where there was an amount of money in it. With one it is not
	// restless.
	Money uint8 `cbor:"9,keyasint,omitempty"`
	// News says that its last change was told though the place was restless: what then goes again is told too.
	News bool `cbor:"12,keyasint,omitempty"`
	// Began is the check at which it became restless, 0 if it is not. Said says that the subscribers were told.
	Began uint64 `cbor:"10,keyasint,omitempty"`
	Said  bool   `cbor:"11,keyasint,omitempty"`
}

// Extent is a range of blocks. In a single block, the first Head words and the last Tail words stayed.
type Extent struct {
	_          struct{} `cbor:",toarray"`
	From, To   int
	Head, Tail int
}

// extent returns where r is: all its extents together.
func (r *Rotation) extent() Extent {
	x := r.Extents[0]
	for _, y := range r.Extents[1:] {
		if x.From != y.From || x.To != y.To {
			x.Head, x.Tail = 0, 0
		}
		x = Extent{From: min(x.From, y.From), To: max(x.To, y.To), Head: min(x.Head, y.Head), Tail: min(x.Tail, y.Tail)}
	}
	if x.To-x.From != 1 {
		x.Head, x.Tail = 0, 0
	}
	return x
}

// isRestless reports whether r is restless at a check.
func (r *Rotation) isRestless(check uint64) bool {
	return r.Began > 0 && r.Began < check && r.Money == 0
}

// hasBegun reports whether the words of r are restless, or will be at the next check.
func (r *Rotation) hasBegun() bool { return r.Began > 0 }

// isOf reports whether the places of t are those of the text content.
func (t *Table) isOf(content string) bool {
	return len(t.Rotations) > 0 && t.Text == hashString(offset64, content)
}

// learnWords notes where the words of the two texts of c differ. It sets the words of l.
func (t *Table) learnWords(c *comparison, check uint64, l *Lesson) {
	if !t.isOf(c.old.content) {
		t.Rotations = nil
	}
	var all []stretch
	if !c.inOrder {
		all = c.stretches()
	}
	t.Rotations = slices.Clone(t.Rotations)
	if len(all) > maxStretches {
		t.Rotations = nil
		return
	}
	of := make([][]stretch, len(t.Rotations))
	var others []stretch
	for _, s := range all {
		i := slices.IndexFunc(t.Rotations, func(r Rotation) bool {
			x := r.extent()
			return x.From <= s.a && s.b <= x.To || s.a < x.To && x.From < s.b
		})
		if i < 0 {
			others = append(others, s)
		} else {
			of[i] = append(of[i], s)
		}
	}
	m := mapping{all, len(c.new.spans)}
	for i := range t.Rotations {
		r := &t.Rotations[i]
		was := r.extent()
		r.Extents = slices.Clone(r.Extents)
		for k, x := range r.Extents {
			r.Extents[k] = m.extent(x)
		}
		if len(of[i]) > 0 {
			muted, news := r.change(c, was, of[i], check)
			l.Words, l.NewWords = append(l.Words, muted...), l.NewWords || news
		}
	}
	for _, s := range others {
		r := Rotation{}
		r.change(c, Extent{From: s.a, To: s.b}, []stretch{s}, check)
		t.Rotations = append(t.Rotations, r)
	}
	t.forgetWords(check)
	if len(t.Rotations) > 0 {
		t.Text = hashString(offset64, c.new.content)
	}
	l.BeganWords = t.wordsOf(c.new, func(r *Rotation) bool { return r.hasBegun() && !r.Said })
}

// change notes that the words of r, which was at extent was of the older text, changed in the stretches. It returns
// those that are muted. isNews says that r is restless and changed in another way than it does.
func (r *Rotation) change(c *comparison, was Extent, all []stretch, check uint64) (muted [][4]int, isNews bool) {
	now := Extent{From: all[0].c, To: all[len(all)-1].d}
	inBlock := len(all) == 1 && all[0].b-all[0].a == 1 && all[0].d-all[0].c == 1
	edit := [4]int{}
	if inBlock {
		now.Head, now.Tail, edit = c.editOf(all[0])
	}
	removed, added, words := 0, 0, 0
	beyond := now.Head < was.Head || now.Tail < was.Tail
	money, fresh := false, false
	hadNone := was.From == was.To
	for _, s := range all {
		removed, added = removed+s.b-s.a, added+s.d-s.c
		beyond = beyond || s.a < was.From || s.b > was.To
		for i := s.a; i < s.b; i++ { // only the blocks of the place count
			money = money || was.From <= i && i < was.To && c.old.block(i).hasMoney()
		}
		for i := s.c; i < s.d; i++ {
			money = money || !beyond && c.new.block(i).hasMoney()
			words += strings.Count(c.new.span(i), " ") + 1
			h := hashString(offset64, c.new.span(i))
			if k := slices.Index(r.Seen, h); k >= 0 {
				r.Seen = slices.Delete(slices.Clone(r.Seen), k, k+1)
			} else {
				fresh = true
			}
			r.Seen = append([]uint64{h}, r.Seen[:min(len(r.Seen), maxSeen-1)]...)
		}
	}
	grew := added > 0 && 2*removed < was.To-was.From || removed == 0 && !hadNone
	wordsBefore := 0
	for i := was.From; i < was.To; i++ {
		wordsBefore += strings.Count(c.old.span(i), " ") + 1
	}
	if r.Money <<= 1; money {
		r.Money |= 1
	}
	seldom := fresh && (was.Head == 0 && was.Tail == 0 || !inBlock) &&
		(!freshLately(r.Fresh) || 4*removed < 3*(was.To-was.From)) // a block that is new, where new ones are rare
	news := beyond || grew || r.isLarge(added, removed)
	unlike := news || r.News || seldom || removed == 0 && fresh
	if r.isRestless(check) && !unlike {
		for _, s := range all {
			e := edit
			if !inBlock {
				x, y := c.old.bytesOf(s.a, s.b), c.new.bytesOf(s.c, s.d)
				e = [4]int{x[0], x[1], y[0], y[1]}
			}
			muted = append(muted, e)
		}
	}
	if beyond && r.Last > 0 && words > 2*wordsBefore+2 {
		*r = Rotation{Seen: r.Seen, Money: r.Money, Extents: r.Extents} // it is another place
	}
	r.News = news && r.Began > 0
	if r.Last > 0 {
		r.Gaps, r.Known = r.Gaps<<1, min(r.Known+1, maxKnown)
		if check-r.Last == 1 {
			r.Gaps |= 1
		}
	}
	if added > 0 {
		if r.Fresh <<= 1; fresh {
			r.Fresh |= 1
		}
	}
	if r.Grew <<= 1; grew {
		r.Grew |= 1
	}
	r.Last = check
	r.Sizes = append([]int{added}, r.Sizes[:min(len(r.Sizes), lastSizes-1)]...)
	r.Extents = append([]Extent{now}, r.Extents[:min(len(r.Extents), lastExtents-1)]...)
	switch {
	case r.Began == 0 && r.Known >= wordsBeginAt && r.Gaps&(1<<wordsBeginAt-1) == 1<<wordsBeginAt-1 && r.Money == 0:
		r.Began = check
	case r.Began > 0 && r.Known >= knownToEnd && 2*r.inARow() < r.Known:
		r.Began, r.Said = 0, false
	}
	return muted, unlike && r.hasBegun()
}

// isLarge reports whether more blocks came than went, and more than came with all but one of the last changes.
func (r *Rotation) isLarge(added, removed int) bool {
	as := 0
	for _, n := range r.Sizes {
		if n >= added {
			as++
		}
	}
	return added > removed && as < 2
}

// freshLately reports whether at least three of the last four changes brought a block that was not seen before.
func freshLately(fresh uint8) bool { return bits.OnesCount8(fresh&15) >= 3 }

// inARow returns how many of the known changes came at the check behind the one before.
func (r *Rotation) inARow() int { return bits.OnesCount16(r.Gaps) }

func (b *Block) hasMoney() bool {
	return slices.ContainsFunc(b.numbers, func(n number) bool { return n.kind == kindMoney })
}

// bytesOf returns the bytes of the blocks [from, to).
func (t *Text) bytesOf(from, to int) [2]int {
	switch {
	case from < to:
		return [2]int{t.spans[from].start, t.spans[to-1].end}
	case from < len(t.spans):
		return [2]int{t.spans[from].start, t.spans[from].start}
	}
	return [2]int{len(t.content), len(t.content)}
}

// editOf returns what changed in a stretch of one block: how many words before and behind it stayed, and where it is.
func (c *comparison) editOf(s stretch) (head, tail int, e [4]int) {
	x, y := c.old.block(s.a), c.new.block(s.c)
	a, b := x.words(), y.words()
	for head < len(a) && head < len(b) && a[head].text == b[head].text {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail].text == b[len(b)-1-tail].text {
		tail++
	}
	signs := func(ws []word) bool { return !slices.ContainsFunc(ws, func(w word) bool { return w.letters }) }
	if signs(a[:head]) { // a full stop says nothing of what stands before it
		head = 0
	}
	if signs(a[len(a)-tail:]) {
		tail = 0
	}
	at := func(start int, ws []word) (begin, end int) {
		from, to := ws[0].start, ws[len(ws)-1].end
		if head > 0 {
			from = ws[head-1].end
		}
		if tail > 0 {
			to = ws[len(ws)-tail].start
		}
		return start + from, start + max(from, to)
	}
	e[0], e[1] = at(x.Start, a)
	e[2], e[3] = at(y.Start, b)
	return head, tail, e
}

// word is a word, a sign or a number of a block, which has the bytes [start, end). All numbers of a kind have the
// same text.
type word struct {
	text       string
	start, end int
	letters    bool
}

func (b *Block) words() []word {
	all := make([]word, 0, len(b.Text)/4)
	var pieces []piece
	from := 0
	plain := func(to int) {
		pieces = appendPieces(pieces[:0], b.Text[from:to])
		for _, p := range pieces {
			all = append(all, word{b.Text[from+p.start : from+p.end], from + p.start, from + p.end, p.kind == letters})
		}
	}
	for _, n := range b.numbers {
		plain(n.start)
		all = append(all, word{"\x00" + string(n.kind), n.start, n.end, false})
		from = n.end
	}
	plain(len(b.Text))
	if len(all) == 0 { // a block of white space
		all = append(all, word{b.Text, 0, len(b.Text), false})
	}
	return all
}

// mapping leads from the blocks of a text to those of the next one.
type mapping struct {
	stretches []stretch
	news      int // blocks
}

// extent returns where x is in the newer text, together with the stretches that reach into it.
func (m mapping) extent(x Extent) Extent {
	y := x
	for _, s := range m.stretches {
		by := (s.d - s.c) - (s.b - s.a)
		switch {
		case s.b < x.From || s.b == x.From && s.a < s.b: // before it
			y.From, y.To = y.From+by, y.To+by
		case s.a > x.To || s.a == x.To && s.a < s.b: // behind it
		default:
			if s.a < x.From {
				y.From = s.c
			}
			if y.To += by; s.b > x.To {
				y.To = s.d
			}
		}
	}
	y.From = min(y.From, m.news)
	y.To = min(max(y.To, y.From), m.news)
	return y
}

// forgetWords drops the places that stood, and of too many those that changed least often. Of places that overlap it
// keeps the one that is known better.
func (t *Table) forgetWords(check uint64) {
	slices.SortStableFunc(t.Rotations, func(a, b Rotation) int {
		return cmp.Or(cmp.Compare(min(b.Began, 1), min(a.Began, 1)), cmp.Compare(b.Known, a.Known))
	})
	var kept []Rotation
	for _, r := range t.Rotations {
		x := r.extent()
		stood := check - r.Last
		overlaps := slices.ContainsFunc(kept, func(k Rotation) bool { y := k.extent(); return x.From < y.To && y.From < x.To || x == y })
		if stood <= calmAfter || r.Began > 0 && stood <= wordsStand {
			if !overlaps && len(kept) < maxRotations {
				kept = append(kept, r)
			}
		}
	}
	t.Rotations = kept
}

// maxWord is the length of the longest word of a lexicon in bytes.
const maxWord = 12

// integer is a meaning. Zero is that of words which a lexicon does not have.
type integer interface{ ~uint8 | ~int64 }

// lexicon says what words mean, in whichever case.
type lexicon[T integer] struct {
	meanings map[string]T
	// begins holds the first bytes and the lengths of the words: most words are none of them.
	begins [256][maxWord + 1]bool
}

// lexiconOf returns the lexicon of words in small letters, by their meaning. The meanings of a word are added up.
func lexiconOf[T integer](words map[T]string) *lexicon[T] {
	l := &lexicon[T]{meanings: make(map[string]T)}
	for meaning, list := range words {
		for _, w := range strings.Fields(list) {
			l.meanings[w] |= meaning
			l.begins[w[0]][len(w)] = true
			l.begins[strings.ToUpper(w)[0]][len(w)] = true
		}
	}
	return l
}

// of returns what s means.
func (l *lexicon[T]) of(s string) (meaning T) {
	if s == "" || len(s) > maxWord || !l.begins[s[0]][len(s)] {
		return meaning
	}
	return l.meanings[strings.ToLower(s)]
}
