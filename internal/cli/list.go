package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

func (a *app) listVerb() *cobra.Command {
	var (
		f       inspect.ListFilter
		verbose bool
	)
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "list (--data DIR | -c FILE)",
		Short: "Lists pages, subscriptions and receivers with their state",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Tree && f.Sinks {
				return newUsageError(cmd, "--tree lists pages; give it without --sinks")
			}
			if err := checkPageURL(cmd, f.URL); err != nil {
				return err
			}
			return a.withDirectory(cmd, func(ctx context.Context, m process) error {
				l, err := m.List(ctx, f)
				if err != nil {
					return err
				}
				filtered := f.URL+f.Client+f.Tag != ""
				if m.router != nil && f.Sinks && !filtered && a.flags.config != "" { // otherwise the process knows its sinks
					c, err := a.load(cmd)
					if err != nil {
						return err
					}
					defer closeSinks(c.Router.Sinks)
					l.Receivers = withUnused(l.Receivers, slices.Collect(maps.Keys(c.Router.Sinks)))
				}
				if err := a.printLanes(ctx, m); err != nil {
					return err
				}
				switch {
				case filtered && len(l.Pages) == 0:
					return matchesNothing("no page is watched" + filterText(f))
				case f.Sinks:
					m.out.printSinks(l.Receivers)
				case f.Tree:
					m.out.printTrees(l.Pages)
				default:
					m.out.printPages(l.Pages, verbose)
					if len(l.Pages) > 0 && len(l.Receivers) > 0 {
						m.out.printLine("")
					}
					m.out.printSinks(l.Receivers)
				}
				return nil
			})
		},
	}, askFlags)
	fs := cmd.Flags()
	fs.StringVar(&f.URL, "url", "", "only the page of this `URL`")
	fs.StringVar(&f.Client, "client", "", "only what the client `NAME` watches")
	fs.StringVar(&f.Tag, "tag", "", "only subscriptions with this `TAG`, and the pages that have one")
	fs.BoolVarP(&verbose, "verbose", "v", false, "also the documents and subscriptions of each page")
	fs.BoolVar(&f.Sinks, "sinks", false, "only the sinks: the health of each, its pending notifications, its last success and error")
	fs.BoolVar(&f.Tree, "tree", false, "which linked pages each page watches, and through which page")
	return cmd
}

// stateWidth is the width of the column of states.
const stateWidth = len(inspect.StateExpired)

// filterText describes what f selects.
func filterText(f inspect.ListFilter) string {
	s := ""
	if f.URL != "" {
		s = " at " + f.URL
	}
	if f.Client != "" {
		s += fmt.Sprintf(" for client %q", f.Client)
	}
	if f.Tag != "" {
		s += fmt.Sprintf(" with the tag %q", f.Tag)
	}
	return s
}

// printPages prints all pages, one a line, or with details where verbose is set.
func (r *results) printPages(all []inspect.Page, verbose bool) {
	if verbose || r.json {
		for _, p := range all {
			r.printPage(p)
		}
		return
	}
	rows := make([][]string, 0, len(all))
	for _, p := range all {
		what := r.checksText(p)
		gone := slices.IndexFunc(p.Documents, func(d inspect.Document) bool { return d.State != inspect.StateActive })
		switch {
		case p.State == inspect.StateFailing && p.Failures == 0 && gone >= 0:
			what = p.Documents[gone].Missing() + "; " + what
		case p.State != inspect.StateActive:
			what = r.sinceText(p)
		}
		if n := restlessPlaces(p); n > 0 {
			what += "; " + countNoun(n, "place") + " muted"
		}
		rows = append(rows, []string{p.State, p.URL, countNoun(len(p.Subscriptions), "subscription"), what})
	}
	r.printTable("", rows, stateWidth)
}

// restlessPlaces returns how many places of p are muted.
func restlessPlaces(p inspect.Page) (n int) {
	for _, d := range p.Documents {
		if d.Restless != nil && !d.Restless.Whole {
			n += d.Restless.Count
		}
	}
	return n
}

// printPage prints p with its documents and subscriptions.
func (r *results) printPage(p inspect.Page) {
	r.printJSON("page", struct {
		inspect.Page
		Documents     *struct{} `json:"documents,omitempty"` // have lines of their own, as subscriptions do
		Subscriptions *struct{} `json:"subscriptions,omitempty"`
	}{Page: p})
	for _, d := range p.Documents {
		r.printObject(d, "kind", "document", "page", p.URL)
	}
	for _, s := range p.Subscriptions {
		r.printObject(s, "kind", "subscription", "page", p.URL)
	}
	r.printLine("%-*s  %s", stateWidth, p.State, p.URL)
	const indent = "         "
	if p.State != inspect.StateActive {
		r.printLine(indent+"%s", r.sinceText(p))
	}
	r.printLine(indent+"%s", r.checksText(p))
	documents := make([][]string, 0, len(p.Documents))
	for _, d := range p.Documents {
		documents = append(documents, r.documentRow(d, len(p.Documents) > 1))
	}
	r.printTable(indent, documents)
	subscriptions := make([][]string, 0, len(p.Subscriptions))
	for _, s := range p.Subscriptions {
		state := ""
		if s.State != inspect.StateActive {
			state = strings.TrimSuffix(fmt.Sprintf("%s since %s%s: %s", s.State, formatTime(s.Since, r.now), r.untilText(s.PausedUntil), s.Reason), ": ")
		}
		document := ""
		if len(p.Documents) > 1 {
			document = "document " + s.Document
		}
		if s.Language != "" {
			document = strings.TrimSpace(document + fmt.Sprintf("  language: %s (%s)", s.Language, text.FromSubscription.Reason()))
		}
		subscriptions = append(subscriptions, []string{s.Client, reportedText(strings.Join(s.Keywords, ", "), s.View), receiversText(s), settingsText(s), document, followedText(s), originText(s), state})
	}
	r.printTable(indent, subscriptions)
	if len(p.Keep) > 0 {
		r.printLine(indent+"kept by %s", strings.Join(p.Keep, ", "))
	}
}

// originText says who made s.
func originText(s inspect.Subscription) string {
	switch {
	case s.Origin == config.Origin:
		return "of the configuration"
	case s.Origin == vokter.OriginAPI:
		return "made at run time"
	case flow.MadeAtRunTime(s.Origin):
		return "made by the list " + strings.TrimPrefix(s.Origin, flow.ListOrigin(""))
	case s.Origin == "" || s.FollowedFrom != "":
		return ""
	}
	return "made by " + s.Origin
}

// reportedText says what a subscription to a view reports. Without keywords it is every change, or the value.
func reportedText(keywords string, v pipeline.View) string {
	if keywords == "" && v.Value != nil {
		return "the value"
	}
	return cmp.Or(keywords, "every change")
}

// receiversText names the sinks of s, and its digest if it has one.
func receiversText(s inspect.Subscription) string {
	to := "to " + strings.Join(s.Sinks, ", ")
	if s.Digest != nil {
		to += " in digests " + s.Digest.String()
	}
	if !s.Quiet.IsZero() {
		to += ", not at " + s.Quiet.String()
	}
	if s.Channel != "" {
		to += ", channel " + s.Channel
	}
	if s.Severity != "" {
		to += ", " + s.Severity
	}
	if len(s.Tags) > 0 {
		to += ", tags: " + strings.Join(s.Tags, ", ")
	}
	return to
}

// settingsText lists the options of s that differ from their defaults and that the columns beside it do not show.
func settingsText(s inspect.Subscription) string {
	shown := []string{"url", "client", "paused", "keywords", "sinks", "digest", "quiet", "channel", "severity", "tags", "language"}
	if s.Interval.Cron == "" && s.Interval.Max == 0 {
		shown = append(shown, "interval") // it shows in when the next check is
	}
	if s.FollowedFrom != "" {
		shown = append(shown, "sitemap", "follow") // of the page that links here
	}
	return strings.Join(config.Settings(s.Subscription, shown...), ", ")
}

// sinceText says since when p is not active, and why.
func (r *results) sinceText(p inspect.Page) string {
	until := r.untilText(p.PausedUntil)
	if !p.GiveUp.IsZero() && p.State == inspect.StateDormant {
		until = ", given up at " + formatTime(p.GiveUp, r.now) + " unless it answers"
	}
	return strings.TrimSuffix(fmt.Sprintf("since %s%s: %s", formatTime(p.Since, r.now), until, r.failureText(p)), ": ")
}

// untilText says when a pause ends, if it does by itself.
func (r *results) untilText(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return ", until " + formatTime(end, r.now)
}

// failureText says why p is not active.
func (r *results) failureText(p inspect.Page) string {
	if p.Failures == 0 {
		return p.Reason
	}
	return fmt.Sprintf("%s in a row failed: %s", countNoun(p.Failures, "check"), p.Reason)
}

// checksText says how often and when p was last checked and will be checked next.
func (r *results) checksText(p inspect.Page) string {
	switch {
	case p.Pushed && p.LastCheck.IsZero():
		return "not pushed yet"
	case p.Pushed:
		return "pushed, the last time " + formatTime(p.LastCheck, r.now)
	case p.Checks == 0:
		return "not checked yet"
	}
	s := fmt.Sprintf("%s, the last %s", countNoun(int(p.Checks), "check"), formatTime(p.LastCheck, r.now))
	if !p.NextCheck.IsZero() {
		s += ", the next " + r.dueText(p.NextCheck)
	}
	return s
}

// documentRow returns the table row of d. several says that its page has other documents.
func (r *results) documentRow(d inspect.Document, several bool) []string {
	row := []string{"no version yet", "", "", ""}
	if d.Version > 0 {
		row[0] = fmt.Sprintf("version %d of %s", d.Version, formatTime(d.Time, r.now))
	}
	if d.Language != "" {
		row[2] = fmt.Sprintf("language: %s (%s)", d.Language, d.LanguageFrom.Reason())
	}
	if d.Title != "" {
		row[1] = `"` + d.Title + `"`
	}
	if !d.View.IsZero() || several {
		row[3] = "document " + d.ID
	}
	if why := d.Missing(); why != "" {
		row = append(row, why)
	}
	if places := d.RestlessText(); places != "" {
		row = append(row, places)
	}
	return row
}

// printTrees prints the pages that clients named, each with the linked pages that it watches.
func (r *results) printTrees(all []inspect.Page) {
	if r.json {
		for _, p := range all {
			r.printPage(p)
		}
		return
	}
	known := make(map[string]inspect.Page, len(all))
	for _, p := range all {
		known[p.URL] = p
	}
	for _, p := range all {
		own := len(p.Keep) > 0
		children := make(map[string][]inspect.LinkedPage)
		seen := make(map[string]bool)
		var bounded []string
		for _, s := range p.Subscriptions {
			own = own || s.FollowedFrom == ""
			for _, l := range s.Linked {
				if !seen[l.URL] {
					seen[l.URL] = true
					children[l.From] = append(children[l.From], l)
				}
			}
			if s.Bounded != "" {
				bounded = append(bounded, s.Bounded)
			}
		}
		if !own {
			continue // it is in the tree of another page
		}
		rows := [][]string{r.treeRow(p.URL, p, true)}
		var add func(from, before string)
		add = func(from, before string) { // before are the lines of the pages above
			for i, l := range children[from] {
				branch, below := "├ ", "│ "
				if i == len(children[from])-1 {
					branch, below = "└ ", "  "
				}
				linked, here := known[l.URL]
				rows = append(rows, r.treeRow(before+branch+l.URL, linked, here))
				add(l.URL, before+below)
			}
		}
		add(p.URL, "")
		r.printTable("", rows, stateWidth)
		for _, why := range bounded {
			r.printLine("%*s  %s", stateWidth, "", why)
		}
	}
}

// treeRow returns the row of p, whose URL is indented. here says that this process knows p.
func (r *results) treeRow(indented string, p inspect.Page, here bool) []string {
	switch {
	case !here:
		return []string{"", indented, "another process owns it, or it is not there yet"}
	case p.State != inspect.StateActive:
		return []string{p.State, indented, "since " + formatTime(p.Since, r.now) + ": " + r.failureText(p)}
	}
	return []string{p.State, indented, r.checksText(p)}
}

// followedText says why s is there, if no client made it.
func followedText(s inspect.Subscription) string {
	if s.FollowedFrom == "" {
		return ""
	}
	return "followed from " + s.FollowedFrom
}
