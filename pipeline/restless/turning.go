package restless

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// wordsOf names the places that are in question, as they are in content.
func (t *Table) wordsOf(content *Text, inQuestion func(*Rotation) bool) (m pipeline.Muting) {
	for i := range t.Rotations {
		if r := &t.Rotations[i]; inQuestion(r) {
			if m.Count++; len(m.Places) < pipeline.MaxNamedPlaces {
				m.Places = append(m.Places, placeOf(r, content).Label)
			}
		}
	}
	return m
}

// RestlessWords returns the places that are restless in their words, as they are in content.
func (t *Table) RestlessWords(content string) pipeline.Muting {
	return t.wordsOf(NewText(content), (*Rotation).hasBegun)
}

// CountRestlessWords returns how many places RestlessWords has.
func (t *Table) CountRestlessWords() (n int) {
	for i := range t.Rotations {
		if t.Rotations[i].hasBegun() {
			n++
		}
	}
	return n
}

// WithoutWords returns content, the text of the last check, without the places that are restless in their words. ok is
// false if there are none.
func (t *Table) WithoutWords(content string) (rest string, ok bool) {
	if t.CountRestlessWords() == 0 || !t.isOf(content) {
		return content, false
	}
	text := NewText(content)
	var cuts []Turning
	for i := range t.Rotations {
		if r := &t.Rotations[i]; r.hasBegun() && r.Money == 0 {
			cuts = append(cuts, placeOf(r, text))
		}
	}
	slices.SortFunc(cuts, func(a, b Turning) int { return a.Start - b.Start })
	var s strings.Builder
	from := 0
	for _, p := range cuts {
		s.WriteString(content[from:p.Start] + p.Head + p.Tail)
		from = p.End
	}
	s.WriteString(content[from:])
	return s.String(), len(cuts) > 0
}

// Turning is a place whose words change often.
type Turning struct {
	// Start and End are the bytes of the blocks of the place in the text of the last check. Head and Tail are the parts
	// of its only block that stay.
	Start, End int
	Head, Tail string
	// Label shows the place.
	Label string
	// Changes are how many of its last changes are known, and InARow how many of them came at the check behind the one
	// before.
	Changes, InARow int
	// Muted says that subscriptions which ask for it are not told of the place.
	Muted bool
}

// MinTurns is how many changes of a place must be known before it is Turning.
const MinTurns = 6

// turnsLately is how many checks ago a place changed at most that is shown and not restless.
const turnsLately = 16

// turnsOften reports whether the words of r change often: two in three of its changes came at the check behind the one
// before, or nearly half of many. What toggles at every fifth check hardly ever does so by chance.
func (r *Rotation) turnsOften() bool {
	n := r.inARow()
	return r.Known >= MinTurns && 3*n >= 2*r.Known || r.Known == maxKnown && n >= 7
}

// Turning returns the places of content, the text of the last check that read the document, whose words change at half
// of the checks or more. A list that grows is none, and neither is an amount of money.
func (t *Table) Turning(content string, check uint64) (all []Turning) {
	if !t.isOf(content) {
		return nil
	}
	text := NewText(content)
	for i := range t.Rotations {
		r := &t.Rotations[i]
		if r.Money != 0 || !r.turnsOften() || check-r.Last > wordsStand || check-r.Last > turnsLately && r.Began == 0 {
			continue
		}
		if 2*bits.OnesCount8(r.Grew) <= min(r.Known+1, 8) {
			all = append(all, placeOf(r, text))
		}
	}
	slices.SortStableFunc(all, func(a, b Turning) int { return a.Start - b.Start })
	return all
}

// placeOf shows a place of content.
func placeOf(r *Rotation, content *Text) Turning {
	x := r.extent()
	p := Turning{Changes: r.Known, InARow: r.inARow(), Muted: r.hasBegun()}
	x.From, x.To = min(x.From, len(content.spans)), min(x.To, len(content.spans))
	at := content.bytesOf(x.From, x.To)
	p.Start, p.End = at[0], at[1]
	switch {
	case x.From == x.To && x.From > 0:
		p.Label = "[…] behind " + clip(content.span(x.From-1))
	case x.From == x.To:
		p.Label = "[…] at the beginning"
	case x.To-x.From == 1:
		b := content.read(x.From)
		ws := b.words()
		head, tail := min(x.Head, len(ws)), min(x.Tail, len(ws))
		from, to := 0, len(b.Text)
		if head > 0 {
			from = ws[head-1].end
		}
		if tail > 0 && tail <= len(ws)-head {
			to = ws[len(ws)-tail].start
		}
		p.Head, p.Tail = b.Text[:from], b.Text[to:]
		p.Label = "[" + clip(strings.TrimSpace(b.Text[from:to])) + "]"
		if head > 0 {
			p.Label = clipLeft(p.Head) + " " + p.Label
		}
		if tail > 0 {
			p.Label += " " + clip(strings.TrimSpace(p.Tail))
		}
	default:
		p.Label = "[" + clip(content.span(x.From)) + "]"
		p.Label += " and " + plural(x.To-x.From-1)
	}
	return p
}

func plural(n int) string {
	if n == 1 {
		return "the block behind it"
	}
	return "blocks behind it"
}

// clip returns the beginning of s.
func clip(s string) string {
	if len(s) <= maxLabel/2 {
		return s
	}
	return strings.ToValidUTF8(s[:maxLabel/2], "") + "…"
}

// clipLeft returns the end of s.
func clipLeft(s string) string {
	if len(s) <= labelContext {
		return s
	}
	return "… " + strings.ToValidUTF8(s[len(s)-labelContext:], "")
}
