package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Check compares the reports of one notification with what must and may be in it.
// omitted is how many reports the notification says it left out. full says that it is about as
// large as a notification may be: only then may it have fewer than 50 reports, or none for a
// keyword, and still leave some out.
func (e *Expectation) Check(reports []Report, omitted int, full bool) error {
	if omitted < 0 {
		return fmt.Errorf("%d reports were left out", omitted)
	}
	fewest := 50 // reports in a notification that leaves some out
	if len(e.reading.Keywords) == 0 {
		fewest-- // the last edit may be one of two reports
		if err := checkEdits(reports); err != nil {
			return err
		}
	}
	seen := make(map[Report]bool)
	shown := make(map[Report]bool)
	for _, r := range reports {
		if seen[r] {
			return fmt.Errorf("%s %q: reported twice at %d: %q", r.Event, r.Keyword, r.Offset, r.Text)
		}
		seen[r] = true
		if len(e.reading.Keywords) > 0 && r.Edit != 0 {
			return fmt.Errorf("%s %q: edit %d of a keyword", r.Event, r.Keyword, r.Edit)
		}
		look := r
		look.Offset = 0
		if shown[look] && r.Edit == 0 {
			return fmt.Errorf("%s %q: identical reports of %q", r.Event, r.Keyword, r.Text)
		}
		shown[look] = true
		if err := e.checkReport(r); err != nil {
			return fmt.Errorf("%s %q: %w", r.Event, r.Keyword, err)
		}
	}
	unreported := 0
	for _, c := range e.claims {
		if full && len(c.must) > 0 && !c.isReported(reports) {
			unreported++
			continue
		}
		for _, p := range c.must {
			if err := e.checkPlace(c, p, reports, omitted > 0); err != nil {
				return fmt.Errorf("%s %q: %w", c.event, c.key.spelling, err)
			}
		}
	}
	if unreported > omitted {
		return fmt.Errorf("%d keywords are not reported, but only %d reports were left out", unreported, omitted)
	}
	if n := len(e.claims); omitted > 0 && !full && len(reports) < max(fewest, n) && !e.Doubtful() {
		return fmt.Errorf("truncated at %d reports", len(reports))
	}
	return nil
}

func (e *Expectation) findClaim(event, spelling string) *claim {
	for _, c := range e.claims {
		if c.event == event && c.key.spelling == spelling {
			return c
		}
	}
	return nil
}

// isReported reports whether one of reports belongs to c.
func (c *claim) isReported(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool { return r.Event == c.event && r.Keyword == c.key.spelling })
}

func (e *Expectation) pageOf(event string) Page {
	if event == Added {
		return e.change.pages[newSide]
	}
	return e.change.pages[oldSide]
}

// checkReport holds one report against what may be reported.
func (e *Expectation) checkReport(r Report) error {
	c := e.findClaim(r.Event, r.Keyword)
	if c == nil {
		return fmt.Errorf("nothing of it in this change, but reported: %q", r.Text)
	}
	p := e.pageOf(r.Event)
	b := -1
	for i, block := range p {
		if r.Offset >= block.Offset && r.Offset+len(r.Text) <= block.Offset+len(block.Text) {
			b = i
		}
	}
	if b < 0 {
		return fmt.Errorf("text %q at %d is in no block", r.Text, r.Offset)
	}
	if at := r.Offset - p[b].Offset; p[b].Text[at:at+len(r.Text)] != r.Text {
		return fmt.Errorf("text %q is not what stands at %d: %q", r.Text, r.Offset, p[b].Text[at:at+len(r.Text)])
	}
	if !c.may[b] {
		return fmt.Errorf("text %q is in block %d, where it is no news", r.Text, b)
	}
	if len(e.reading.Keywords) > 0 && !e.reading.contains(c.key, r.Text) {
		if beside := e.reading.Terms || e.reading.contains(c.key, r.Snippet); !e.reading.isNear() || !beside {
			return fmt.Errorf("text %q does not hold it", r.Text)
		}
	}
	if !strings.Contains(r.Snippet, r.Text) {
		return fmt.Errorf("snippet %q does not hold text %q", r.Snippet, r.Text)
	}
	for _, part := range pieces(r.Snippet) {
		if !strings.Contains(oneLine(p), part) {
			return fmt.Errorf("snippet %q is not in its version", r.Snippet)
		}
	}
	switch {
	case r.Title != "" && !isTitle(e.change.pages[oldSide], r.Title) && !isTitle(e.change.pages[newSide], r.Title):
		return fmt.Errorf("text %q is in the item %q, which is none", r.Text, r.Title)
	case r.Item == "new" && r.Event != Added, r.Item == "gone" && r.Event != Removed, r.Item != "" && r.Title == "":
		return fmt.Errorf("text %q is %s in an item that is %q, with the title %q", r.Text, r.Event, r.Item, r.Title)
	}
	if e.reading.Terms && len(e.reading.Keywords) > 0 || !c.exact {
		return nil
	}
	for s := range c.changed {
		if r.Offset <= s[0] && s[1] <= r.Offset+len(r.Text) {
			return nil
		}
	}
	return fmt.Errorf("text %q holds only occurrences that were kept", r.Text)
}

// pieces returns the runs of words between the marks of a snippet: "..." for words left out, "·" between cells. A page
// may have these words itself, even beside a mark.
func pieces(snippet string) []string {
	var all []string
	var words []string
	for _, word := range append(strings.Fields(snippet), "...") {
		if word != "..." && word != "·" {
			words = append(words, word)
		} else if len(words) > 0 {
			all, words = append(all, strings.Join(words, " ")), nil
		}
	}
	return all
}

// checkPlace looks for the reports that one place asks for. Identical reports are given
// once per notification, so one that looks the same elsewhere will do.
func (e *Expectation) checkPlace(c *claim, p requiredPlace, reports []Report, truncated bool) error {
	page := e.pageOf(c.event)
	inside := setOf(p.blocks)
	there, similar := false, false
	for _, r := range reports {
		if r.Event != c.event || r.Keyword != c.key.spelling {
			continue
		}
		similar = similar || truncated
		for i, b := range page {
			if !inside[i] {
				continue
			}
			there = there || r.Offset >= b.Offset && r.Offset < b.Offset+len(b.Text)
			similar = similar || strings.Contains(b.Text, r.Text)
		}
	}
	if !there && !similar {
		return fmt.Errorf("must be reported in blocks %v", p.blocks)
	}
	for _, o := range p.occurrences {
		found := truncated
		for _, r := range reports {
			if r.Event != c.event || r.Keyword != c.key.spelling {
				continue
			}
			found = found || r.Offset < o[1] && o[0] < r.Offset+len(r.Text) || e.standsAround(page, o, r.Text)
		}
		if !found {
			return fmt.Errorf("the occurrence at %d must be reported", o[0])
		}
	}
	return nil
}

// standsAround reports whether text also stands around the bytes o of page.
func (e *Expectation) standsAround(page Page, o [2]int, text string) bool {
	for _, b := range page {
		if o[0] < b.Offset || o[1] > b.Offset+len(b.Text) {
			continue
		}
		for at := range b.Text {
			if strings.HasPrefix(b.Text[at:], text) && b.Offset+at < o[1] && o[0] < b.Offset+at+len(text) {
				return true
			}
		}
	}
	return false
}

// oneLine returns the text of the page as one line.
func oneLine(p Page) string {
	var words []string
	for _, b := range p {
		words = append(words, strings.Fields(b.Text)...)
	}
	return strings.Join(words, " ")
}
