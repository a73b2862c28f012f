package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
)

// leastWords is how many words a part of a page must have to be watched in place of the whole page.
const leastWords = 10

// ordinaryClient is who is notified if the user does not say.
const ordinaryClient = "default"

// mainParts are the selectors of the part of a page that it is about, the best first.
var mainParts = []struct {
	selector string
	matches  func(*html.Node) bool
}{
	{"main", func(n *html.Node) bool { return n.DataAtom == atom.Main }},
	{`[role="main"]`, func(n *html.Node) bool {
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "role" && a.Val == "main" })
	}},
	{"article", func(n *html.Node) bool { return n.DataAtom == atom.Article }},
}

// watchURL watches the page of a URL for every change, with the settings that most people want: the part that the page
// is about, without what changes at nearly every check, told in the inbox.
func watchURL(r *request) (string, error) {
	s := pipeline.Subscription{URL: strings.TrimSpace(r.form.Get("url")), Client: r.defaultClient(), Sinks: []string{config.Inbox}, Restless: pipeline.RestlessMute}
	if !strings.Contains(s.URL, "://") {
		s.URL = "https://" + s.URL
	}
	part := "the whole page"
	source, err := r.pageSource(s.URL)
	problem, refused := errors.AsType[*client.Problem](err)
	switch {
	case err == nil:
		if selector := mainPart(r, source); selector != "" {
			s.Select, part = parseSelectors([]string{selector}), "its part "+selector
		}
	case refused && problem.Status == http.StatusUnprocessableEntity: // the form says why, and lets the user go on
		to, err := urlWithQuery("/subscribe", "url", s.URL, "client", s.Client, "sink", config.Inbox)
		if err != nil {
			return "", err
		}
		return "", &redirect{to: to}
	case !errors.Is(err, errNoSource):
		return "", err
	}
	created, err := r.api.Subscribe(r.Context(), s.WithDefaults())
	if err != nil {
		return "", err
	}
	if !created {
		return s.URL + " is watched already.", nil
	}
	return fmt.Sprintf("Watching %s: every change of %s, from now on.", s.URL, part), nil
}

// defaultClient returns for whom the user subscribes unless the user says otherwise.
func (r *request) defaultClient() string {
	all := r.bearer.Clients()
	if len(all) == 0 || slices.Contains(all, ordinaryClient) {
		return ordinaryClient
	}
	return all[0]
}

// mainPart returns the selector of the part that the HTML page of source is about, or "" if it does not say.
func mainPart(r *request, source string) string {
	done, err := r.site.parseSlots.acquire(r.Context())
	if err != nil {
		return ""
	}
	defer done()
	root, _, err := htmltree.Parse(r.Context(), []byte(source))
	if err != nil {
		return ""
	}
	for _, part := range mainParts {
		words := 0
		for n := range root.Descendants() {
			if n.Type == html.ElementNode && part.matches(n) {
				words += countWords(n)
			}
		}
		if words >= leastWords {
			return part.selector
		}
	}
	return ""
}

// countWords returns how many words the text in n has.
func countWords(n *html.Node) int {
	count := 0
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			count += len(strings.Fields(c.Data))
		case !hiddenElements[c.DataAtom]:
			count += countWords(c)
		}
	}
	return count
}
