package sim

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// saw is a text of l that an accepted check saw.
func (t *truth) saw(l *life, text rendering, e entry) (int, error) {
	look := text.visible()
	if len(l.versions) > 0 {
		if look == l.versions[len(l.versions)-1].text.visible() {
			l.candidate, l.stood, l.rested = "", 0, false
			return 0, nil
		}
		if l.view.Items && l.settled(text) {
			l.rested = false
			return 0, nil
		}
		if !l.rested {
			if l.knows(look) {
				l.candidate, l.stood = "", 0
				return 0, nil
			}
			if look != l.candidate {
				l.candidate, l.stood = look, 0
			}
			if l.stood++; l.stood < l.view.Confirm {
				return 0, nil
			}
		}
	}
	l.candidate, l.stood = "", 0
	if len(e.snapshots) == 0 {
		return 1, nil
	}
	return 1, t.told(l, text, e)
}

// knows reports whether l does not make a version of look, because it is one of its last changes. A
// baseline was no change, and none before it counts.
func (l *life) knows(look string) bool {
	if l.view.FlipFlop == 0 || len(l.versions) == 0 {
		return false
	}
	changes := l.versions[1:]
	for i, v := range l.versions {
		if v.baseline {
			changes = l.versions[i+1:]
		}
	}
	changes = changes[max(len(changes)-l.view.FlipFlop, 0):]
	return slices.ContainsFunc(changes, func(v version) bool { return v.text.visible() == look })
}

// rewrittenAfter is after how many checks in a row a replaced page counts as rewritten.
const rewrittenAfter = 20

// replaced reports whether l must not take text for one of its own: it is a challenge or a shell in place
// of its page.
func (t *truth) replaced(l *life, text rendering) bool {
	if !l.view.Replaced || len(l.versions) == 0 {
		return false
	}
	last := l.versions[len(l.versions)-1].text
	before, after := words(last), words(text)
	challenge, shell := text.wall && !last.wall, before >= 100 && after*20 <= before
	if !challenge && !shell {
		l.walls = 0
		return false
	}
	l.walls++
	return l.walls < rewrittenAfter
}

// words counts the words of a text.
func words(text rendering) int {
	n := 0
	for _, b := range text.page {
		for _, w := range strings.Fields(b.Text) {
			if strings.ContainsFunc(w, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
				n++
			}
		}
	}
	return n
}

// told holds the version that index told against the one that must be.
func (t *truth) told(l *life, text rendering, e entry) error {
	s := e.snapshots[0]
	previous, old := uint64(0), ""
	baseline := len(l.versions) > 0 && l.rested
	with, _ := l.compared(text)
	if len(l.versions) > 0 && !baseline {
		previous, old = l.n, l.versions[len(l.versions)-1].text.content
		if l.view.Items {
			old = with.content
		}
	}
	switch {
	case s.Page != t.url || s.Incarnation != t.incarnation || s.Document != l.id:
		return fmt.Errorf("version %d of %s %s %s, want of %s %s %s", s.N, s.Page, s.Incarnation, s.Document, t.url, t.incarnation, l.id)
	case len(l.versions) > 0 && s.N != l.n+1 || s.N <= l.n:
		return fmt.Errorf("document %s: version %d after %d", l.id, s.N, l.n)
	case s.Previous != previous:
		return fmt.Errorf("document %s: version %d comes after %d, want %d", l.id, s.N, s.Previous, previous)
	case s.Old != old || s.New != text.content:
		return fmt.Errorf("document %s: version %d has texts %q and %q, want %q and %q", l.id, s.N, s.Old, s.New, old, text.content)
	}
	if len(l.versions) == 0 {
		for _, r := range t.subs { // what was before is of another life
			if r.life == l {
				r.from = s.N - 1
			}
		}
	}
	for _, a := range text.feed {
		if before, last := l.article(a.id); before == a && !last {
			t.w.stats.Back++
		}
	}
	l.n, l.rested = s.N, false
	l.versions = append(l.versions, version{s.N, text, with, s.Language, s, e.tenure, baseline})
	t.returns(l)
	t.w.stats.Versions++
	return nil
}

// returns counts a page with validators that is again as it was two versions ago, after its
// lane went to another process.
func (t *truth) returns(l *life) {
	if i := len(l.versions) - 3; i >= 0 && t.w.kafka() && t.w.site(t.url).etags {
		a, b, c := l.versions[i], l.versions[i+1], l.versions[i+2]
		if a.text.content == c.text.content && (a.tenure != b.tenure || b.tenure != c.tenure) {
			t.w.stats.Returns++
		}
	}
}
