package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

// duplicateLine is a line of JSON.
type duplicateLine struct {
	Kind string `json:"kind"`
	inspect.Duplicate
}

// printDuplicates prints groups of documents that have the same or a similar text.
func (r *results) printDuplicates(all []inspect.Duplicate) {
	for _, g := range all {
		r.printJSON(duplicateLine{"duplicate", g})
		what := "a similar text"
		if g.Similarity == 1 {
			what = "the same text"
		}
		what = fmt.Sprintf("%s %d times", what, len(g.Documents))
		if title := g.Documents[0].Title; title != "" {
			what += `: "` + title + `"`
		}
		r.printLine("%s", what)
		rows := make([][]string, 0, len(g.Documents))
		for i, d := range g.Documents {
			row := []string{d.URL, ""}
			switch {
			case i == 0 || g.Similarity == 1:
			case d.Similarity == 1:
				row[1] = "the same as the first"
			default:
				row[1] = fmt.Sprintf("%.0f %% of the first", 100*d.Similarity)
			}
			details := d.Document
			details.Title, details.Language = "", "" // much the same in all rows
			several := slices.ContainsFunc(g.Documents, func(o inspect.DuplicateDocument) bool { return o.URL == d.URL && o.ID != d.ID })
			rows = append(rows, append(row, r.documentRow(details, several)...))
		}
		r.printTable("  ", rows)
	}
}

// suggestion proposes one document for subscriptions to several pages that have the same text.
type suggestion struct {
	Kind string `json:"kind"`
	// URL is the page to watch, and InsteadOf are the others.
	URL       string   `json:"url"`
	InsteadOf []string `json:"instead_of"`
	// Subscriptions are all that are needed then. Those of one client to several of the pages are
	// united.
	Subscriptions []pipeline.Subscription `json:"subscriptions"`
	// Differ are the subscriptions that cannot be united with another one of their client, since
	// their options differ.
	Differ []pipeline.Subscription `json:"differ,omitempty"`
}

// candidate is a document with its subscriptions.
type candidate struct {
	url           string
	document      inspect.Document
	subscriptions []pipeline.Subscription
}

// suggestions returns one suggestion for each text that is watched at several URLs.
func suggestions(l inspect.Listing) []suggestion {
	byText := make(map[string][]candidate)
	var texts []string
	for _, p := range l.Pages {
		for _, d := range p.Documents {
			c := candidate{url: p.URL, document: d}
			for _, s := range p.Subscriptions {
				if s.Document == d.ID && s.State == inspect.StateActive {
					c.subscriptions = append(c.subscriptions, s.Subscription)
				}
			}
			if d.TextHash == "" || len(c.subscriptions) == 0 {
				continue
			}
			if byText[d.TextHash] == nil {
				texts = append(texts, d.TextHash)
			}
			byText[d.TextHash] = append(byText[d.TextHash], c)
		}
	}
	var all []suggestion
	for _, t := range texts {
		if s := suggestDocument(byText[t]); len(s.InsteadOf) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// suggestDocument proposes the document of same, which all have one text, that is fetched safely, has the
// most subscriptions, or has the shortest URL.
func suggestDocument(same []candidate) suggestion {
	best := slices.MinFunc(same, func(a, b candidate) int {
		return cmp.Or(-compareBools(strings.HasPrefix(a.url, "https:"), strings.HasPrefix(b.url, "https:")),
			-cmp.Compare(len(a.subscriptions), len(b.subscriptions)), cmp.Compare(len(a.url), len(b.url)), cmp.Compare(a.url, b.url))
	})
	s := suggestion{Kind: "suggestion", URL: best.url, Subscriptions: slices.Clone(best.subscriptions)}
	for _, c := range same {
		if c.url == best.url {
			continue
		}
		if !slices.Contains(s.InsteadOf, c.url) {
			s.InsteadOf = append(s.InsteadOf, c.url)
		}
		for _, sub := range c.subscriptions {
			s.addMoved(sub, best)
		}
	}
	return s
}

// addMoved adds sub, moved to the document best, to the subscriptions.
func (s *suggestion) addMoved(sub pipeline.Subscription, best candidate) {
	moved := sub
	moved.URL, moved.View = best.subscriptions[0].URL, best.document.View
	i := slices.IndexFunc(s.Subscriptions, func(o pipeline.Subscription) bool { return o.Client == sub.Client })
	if i < 0 {
		s.Subscriptions = append(s.Subscriptions, moved)
		return
	}
	own := &s.Subscriptions[i]
	every := len(sub.Keywords) == 0
	moved.Keywords, moved.URL = own.Keywords, own.URL
	if !reflect.DeepEqual(moved, *own) || every != (len(own.Keywords) == 0) {
		s.Differ = append(s.Differ, sub)
		return
	}
	own.Keywords = slices.Clone(own.Keywords)
	for _, k := range sub.Keywords {
		if !slices.Contains(own.Keywords, k) {
			own.Keywords = append(own.Keywords, k)
		}
	}
}

// compareBools compares false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// printSuggestions prints all as a part of a configuration.
func (r *results) printSuggestions(all []suggestion) error {
	if r.json {
		for _, s := range all {
			r.printJSON(s)
		}
		return nil
	}
	var b strings.Builder
	b.WriteString("subscriptions:\n")
	for _, s := range all {
		fmt.Fprintf(&b, "  # %s has the same text as:\n", s.URL)
		for _, url := range s.InsteadOf {
			fmt.Fprintf(&b, "  #   %s\n", url)
		}
		b.WriteString("  # Watch it alone, by these in place of all subscriptions to them:\n")
		for _, sub := range s.Subscriptions {
			text, err := subscriptionYAML(sub, browser.Page{})
			if err != nil {
				return err
			}
			b.Write(text)
		}
		for _, sub := range s.Differ {
			fmt.Fprintf(&b, "  # Client %q also watches %s with other options. It can have one subscription to a document,\n"+
				"  # so make the options equal, give it another client, or keep it as it is.\n", sub.Client, sub.URL)
		}
	}
	r.write(strings.Map(func(c rune) rune {
		if c != '\n' && render.Steers(c) { // URLs and keywords must not steer a terminal
			return -1
		}
		return c
	}, b.String()))
	return nil
}
