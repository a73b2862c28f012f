package render

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
)

// Entry is one page in a message about several.
type Entry struct {
	// Title is the page's title, or a name made of its URL.
	Title string
	// URL is the page's http or https URL without user information. It may be empty.
	URL string
	// What says what happened on the page. It is empty if the headline says it.
	What string
}

// String returns e in one line.
func (e Entry) String() string {
	s := e.Title
	if e.URL != "" {
		s += " (" + e.URL + ")"
	}
	if e.What != "" {
		s += ": " + e.What
	}
	return s
}

// isGroup reports whether n is of several pages, each with a URL of its own.
func isGroup(n pipeline.Notification) bool { return n.URL == "" && len(n.Items) > 0 }

// groupMessage returns the Message of a notification of several pages: an entry for each. All pages are
// named, as long as the budget has room for their names; what happened on each is cut first.
func groupMessage(n pipeline.Notification, b Budget) Message {
	m := Message{Headline: markCritical(n, Short(groupHeadline(n), maxHeadline)), Severity: n.Severity}
	each := 0 // for one entry
	if b.Total > 0 {
		each = max((b.Total-b.Length(m.Headline)-maxFoot)/len(n.Items)-b.LineCost, minEntry)
	}
	left := b.Total - b.Length(m.Headline) - maxFoot
	diffs := n.Diffs
	for i, item := range n.Items {
		of := diffs[:min(max(item.Diffs, 0), len(diffs))]
		diffs = diffs[len(of):]
		e := entryOf(item, of, b, each)
		left -= b.Length(e.String()) + b.LineCost
		if b.Total > 0 && left < 0 {
			m.Pages = append(m.Pages, Entry{Title: fmt.Sprintf("... and %s", plural(len(n.Items)-i, "more page"))})
			break
		}
		m.Pages = append(m.Pages, e)
	}
	return m
}

const (
	// minEntry is how long an entry may be at least. Where there is no room for so much of each
	// page, pages are left out.
	minEntry = 24
	// maxFoot is more than the length of the line about pages that are left out.
	maxFoot = 30
)

// entryOf returns the entry of one page, of at most most characters; 0 is no limit.
func entryOf(item pipeline.Item, diffs []pipeline.Diff, b Budget, most int) Entry {
	e := Entry{Title: Short(Clean(item.Title), maxTitle), URL: safeURL(item.URL)}
	name := Page(item.URL)
	if e.Title == "" {
		e.Title = Short(name, maxTitle)
	}
	what := headline(pipeline.Notification{Diffs: diffs, Value: item.Value, Status: pipeline.StatusOK})
	if all := diffLines(diffs, b); len(all) > 0 && len(all[0].line.Keywords) > 0 {
		what += ": " + all[0].line.Text()
	}
	what = Short(what, b.Line)
	if most == 0 {
		e.What = what
		return e
	}
	if b.Length(e.String()) > most {
		e.Title = Cut(e.Title, max(most-b.Length(e.URL)-3, 0), b.Length)
	}
	if e.Title == "" || b.Length(e.String()) > most {
		e = Entry{Title: Cut(name, most, b.Length)}
	}
	if room := most - b.Length(e.String()) - 2; room >= minEntry/2 {
		e.What = Cut(what, room, b.Length)
	}
	return e
}

// groupHeadline says how many pages changed, where, and what was found.
func groupHeadline(n pipeline.Notification) string {
	pages, hosts := make(map[string]bool), make(map[string]bool)
	for _, i := range n.Items {
		pages[i.URL] = true
		hosts[pipeline.HostOf(i.URL)] = true
	}
	s := plural(len(pages), "page") + " changed"
	if host := Clean(pipeline.HostOf(n.Items[0].URL)); len(hosts) == 1 && host != "" {
		s += " on " + host
	}
	if found := keywordsOf(n); found != "" {
		s += "; " + found
	}
	return s
}
