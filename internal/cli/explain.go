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

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func (a *app) explain() *cobra.Command {
	var f inspect.ExplainFilter
	cmd := a.flags.with(&cobra.Command{
		Use:   "explain URL (--data DIR | -c FILE)",
		Short: "Explains the last checks of a page and their notifications",
		Long:  "Explains what the last checks of a page found, which notifications they caused, how these were delivered, and why a keyword did not match.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onPage(cmd, args, func(ctx context.Context, m manage.Manager, url string) error {
				e, err := m.Explain(ctx, url, f)
				if err != nil {
					return err
				}
				out := a.results()
				out.explanation(e)
				return out.end()
			})
		},
	}, outputFlags|directoryFlags|configFlags)
	fs := cmd.Flags()
	fs.StringVar(&f.Client, "client", "", "only what the client `NAME` watches")
	fs.StringVar(&f.Keyword, "keyword", "", "only this `KEYWORD`")
	return cmd
}

// Lines of JSON.
type (
	checkLine struct {
		Kind string `json:"kind"`
		inspect.Check
	}
	changeLine struct {
		Kind string `json:"kind"`
		inspect.Change
	}
	keywordLine struct {
		Kind string `json:"kind"`
		inspect.Keyword
	}
)

// explanation prints e in order of time: the checks, the changes, the notifications with the
// results of their deliveries, and what did not match.
func (r *results) explanation(e inspect.Explanation) {
	r.page(e.Page)
	several := len(e.Page.Documents) > 1
	views := make(map[string]pipeline.View)
	for _, d := range e.Page.Documents {
		views[d.ID] = d.View
	}
	r.text("")
	r.text("Checks")
	if len(e.Checks) == 0 {
		r.text("  none is known")
	}
	rows := make([][]string, 0, len(e.Checks))
	for _, c := range e.Checks {
		r.object(checkLine{"check", c})
		rows = append(rows, []string{when(c.Time, r.now), checkName(c.Check), found(c, several, r.now)})
	}
	r.table("  ", rows)
	if len(e.Checks) > 0 {
		if advice := inspect.AccessAdvice(e.Checks[0].Reason); advice != "" {
			r.text("  %s, or to watch with %s", advice, accessFlagNames)
		}
	}
	for _, c := range e.Changes {
		r.object(changeLine{"change", c})
		r.text("")
		r.change(c, several, views[c.Document])
	}
	if len(e.Changes) == 0 {
		r.text("")
		r.text("No change is known.")
	}
	if len(e.Keywords) > 0 {
		r.text("")
		r.text("Keywords, in the last change")
	}
	rows = rows[:0:0]
	for _, k := range e.Keywords {
		r.object(keywordLine{"keyword", k})
		what := "matched"
		if !k.Matched {
			what = "did not match: " + k.Why
		}
		row := []string{k.Client, wanted(k.Keyword, views[k.Document]), "", what}
		if several {
			row[2] = "document " + k.Document
		}
		rows = append(rows, row)
	}
	r.table("  ", rows)
}

// found describes the result of c. It names the documents if the page has several.
func found(c inspect.Check, several bool, now time.Time) string {
	var parts []string
	switch c.Result {
	case flow.OutcomeFailed:
		parts = append(parts, "failed: "+c.Reason)
	case flow.OutcomeUnchanged:
		parts = append(parts, "nothing new")
	default:
		parts = append(parts, "read")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Versions)) {
		v := fmt.Sprintf("version %d", c.Versions[id])
		if several {
			v += " of document " + id
		}
		parts = append(parts, v)
	}
	if c.Result == flow.OutcomeRead && len(c.Versions) == 0 {
		parts = append(parts, cmp.Or(c.Reason, "no other text"))
	}
	var facts []string
	if c.Status != 0 && !strings.Contains(c.Reason, fmt.Sprint(c.Status)) {
		facts = append(facts, fmt.Sprintf("status %d", c.Status))
	}
	if c.Bytes > 0 {
		facts = append(facts, fmt.Sprintf("%d bytes", c.Bytes))
	}
	if c.Took > 0 {
		facts = append(facts, time.Duration(c.Took).Round(time.Millisecond).String())
	}
	if c.Repeats > 0 {
		parts = append(parts, fmt.Sprintf("as in the %s before it, since %s", count(c.Repeats, "check"), when(c.Since, now)))
	}
	s := strings.Join(parts, ", ")
	if len(facts) > 0 {
		s += " (" + strings.Join(facts, ", ") + ")"
	}
	return s
}

// checkName names a check: by its number, or as a pushed page.
func checkName(check uint64) string {
	if check == 0 {
		return "a push"
	}
	return fmt.Sprintf("check %d", check)
}

// change prints c and the notifications that it caused.
func (r *results) change(c inspect.Change, several bool, v pipeline.View) {
	version := fmt.Sprintf("Version %d", c.Version)
	if several {
		version += " of document " + c.Document
	}
	notified := "nobody notified"
	if len(c.Matches) > 0 {
		notified = "notified"
	}
	if c.Version == 0 { // the page expired
		r.text("Expired at %s (%s), %s", when(c.Time, r.now), c.Expired, notified)
	} else {
		r.text("%s, found by %s at %s, %s", version, checkName(c.Check), when(c.Time, r.now), notified)
	}
	rows := make([][]string, 0, len(c.Matches))
	for _, m := range c.Matches {
		to := "by " + m.Sink
		if len(m.Via) > 0 {
			to += " via " + strings.Join(m.Via, ", ")
		}
		keywords := strings.Join(m.Keywords, ", ")
		if keywords == "" && c.Version > 0 {
			keywords = wanted("", v)
		}
		rows = append(rows, []string{m.Client, keywords, to, r.delivery(m)})
	}
	r.table("  ", rows)
	if c.Omitted > 0 {
		r.text("  and %d more", c.Omitted)
	}
}

// delivery describes the state of the delivery of m.
func (r *results) delivery(m inspect.Match) string {
	tried := ""
	if m.Attempts > 0 {
		tried = " after " + count(m.Attempts, "attempt")
	}
	why := ""
	if m.Reason != "" {
		why = ": " + m.Reason
	}
	if m.Digest != "" {
		tried = " in a digest" + tried
	}
	switch m.Delivery {
	case inspect.DeliveryDelivered:
		return "delivered at " + when(m.DeliveryTime, r.now) + tried
	case inspect.DeliveryDigest:
		return "waits in a digest until " + when(m.DeliveryTime, r.now)
	case inspect.DeliveryPending:
		next := ""
		if !m.DeliveryTime.IsZero() {
			next = ", tried next at " + when(m.DeliveryTime, r.now)
		}
		return "not delivered yet" + tried + next + why
	case inspect.DeliveryDead:
		return "given up at " + when(m.DeliveryTime, r.now) + tried + why + " (replay brings it back)"
	case inspect.DeliveryDropped:
		return "dropped, since the subscription was cancelled first"
	case inspect.DeliveryUnrouted:
		return "passed on to nobody, since no rule of this route leads to a sink"
	case inspect.DeliveryForgotten:
		return "too long ago to be known"
	case inspect.DeliveryElsewhere:
		return "delivered by another process, which knows more"
	}
	return m.Delivery + tried + why
}
