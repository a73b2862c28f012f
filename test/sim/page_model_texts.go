package sim

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// applyText applies a text of l that an accepted check saw, and returns how many versions it makes.
func (t *pageModel) applyText(l *documentLife, text renderedText, e indexEntry) (int, error) {
	look := text.visibleText()
	if len(l.versions) > 0 {
		if look == l.versions[len(l.versions)-1].text.visibleText() {
			l.candidate, l.timesSeen, l.hasRested = "", 0, false
			return 0, nil
		}
		if l.view.Items && l.isIgnored(text) {
			l.hasRested = false
			return 0, nil
		}
		if !l.hasRested && l.view.Confirm+l.view.FlipFlop > 0 && strings.Contains(look, rayID) && len(e.snapshots) == 0 {
			// The number after rayID changes at every check. Whether two such texts are one depends on whether it is
			// restless already.
			l.candidate, l.timesSeen = "", 0
			if l.view.Confirm > 0 {
				l.candidate = look
			}
			return 0, nil
		}
		if !l.hasRested && !strings.Contains(look, rayID) {
			if l.isFlipFlop(look) {
				l.candidate, l.timesSeen = "", 0
				return 0, nil
			}
			if look != l.candidate {
				l.candidate, l.timesSeen = look, 0
			}
			if l.timesSeen++; l.timesSeen < l.view.Confirm {
				return 0, nil
			}
		}
	}
	l.candidate, l.timesSeen = "", 0
	if len(e.snapshots) == 0 {
		return 1, nil
	}
	return 1, t.verifySnapshot(l, text, e)
}

// isFlipFlop reports whether look is one of the last changes of l, so that it makes no version. A
// baseline was no change, and no change before it counts.
func (l *documentLife) isFlipFlop(look string) bool {
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
	return slices.ContainsFunc(changes, func(v version) bool { return v.text.visibleText() == look })
}

// rewrittenAfterChecks is after how many checks in a row a replaced page counts as rewritten.
const rewrittenAfterChecks = 20

// isReplaced reports whether text is a challenge or a shell in place of the page, and not a text of l.
func (t *pageModel) isReplaced(l *documentLife, text renderedText) bool {
	if !l.view.Replaced || len(l.versions) == 0 {
		return false
	}
	last := l.versions[len(l.versions)-1].text
	before, after := countWords(last), countWords(text)
	challenge, shell := text.challenge && !last.challenge, before >= 100 && after*20 <= before
	if !challenge && !shell {
		l.replacedRun = 0
		return false
	}
	l.replacedRun++
	return l.replacedRun < rewrittenAfterChecks
}

// countWords counts the words of a text.
func countWords(text renderedText) int {
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

// verifySnapshot compares the version that index published with the one that must be.
func (t *pageModel) verifySnapshot(l *documentLife, text renderedText, e indexEntry) error {
	s := e.snapshots[0]
	previous, old := uint64(0), ""
	baseline := len(l.versions) > 0 && l.hasRested
	with, _ := l.comparedWith(text)
	if len(l.versions) > 0 && !baseline {
		previous, old = l.version, l.versions[len(l.versions)-1].text.content
		if l.view.Items {
			old = with.content
		}
	}
	switch {
	case s.Page != t.url || s.Incarnation != t.incarnation || s.Document != l.id:
		return fmt.Errorf("version %d of %s %s %s, want of %s %s %s", s.N, s.Page, s.Incarnation, s.Document, t.url, t.incarnation, l.id)
	case len(l.versions) > 0 && s.N != l.version+1 || s.N <= l.version:
		return fmt.Errorf("document %s: version %d after %d", l.id, s.N, l.version)
	case s.Previous != previous:
		return fmt.Errorf("document %s: version %d comes after %d, want %d", l.id, s.N, s.Previous, previous)
	case s.Old != old || s.New != text.content:
		return fmt.Errorf("document %s: version %d has texts %q and %q, want %q and %q", l.id, s.N, s.Old, s.New, old, text.content)
	}
	if len(l.versions) == 0 {
		for _, r := range t.subscriptions { // what was before is of another life
			if r.life == l {
				r.from = s.N - 1
			}
		}
	}
	for _, a := range text.feed {
		if before, last := l.lastArticle(a.id); before == a && !last {
			t.world.stats.ReturnedArticles++
		}
	}
	l.version, l.hasRested = s.N, false
	l.versions = append(l.versions, version{s.N, text, with, s.Language, s, e.tenure, baseline})
	t.countRevert(l)
	t.world.stats.Versions++
	return nil
}

// countRevert counts a page with validators that is again as it was two versions ago, after its
// lane went to another process.
func (t *pageModel) countRevert(l *documentLife) {
	if i := len(l.versions) - 3; i >= 0 && t.world.usesKafka() && t.world.siteByURL(t.url).hasETags {
		a, b, c := l.versions[i], l.versions[i+1], l.versions[i+2]
		if a.text.content == c.text.content && (a.tenure != b.tenure || b.tenure != c.tenure) {
			t.world.stats.RevertedPages++
		}
	}
}
