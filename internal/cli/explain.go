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
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func (a *app) explainVerb() *cobra.Command {
	var f inspect.ExplainFilter
	cmd := a.pageVerb(&cobra.Command{
		Use:   "explain URL (--data DIR | -c FILE)",
		Short: "Explains the last checks of a page and their notifications",
		Long:  "Explains what the last checks of a page found, which notifications they caused, how these were delivered, and why a keyword did not match.",
	}, func(ctx context.Context, m process, url string) error {
		e, err := m.Explain(ctx, url, f)
		if err == nil {
			m.out.printExplanation(e, f)
		}
		return err
	})
	fs := cmd.Flags()
	fs.StringVar(&f.Client, "client", "", "only what the client `NAME` watches")
	fs.StringVar(&f.Keyword, "keyword", "", "only this `KEYWORD`")
	return cmd
}

// printProposals prints what p proposes. option writes an option as the user would.
func (r *results) printProposals(proposals []inspect.Proposal, option func(inspect.Proposal) string) {
	if len(proposals) == 0 {
		return
	}
	r.printLine("")
	r.printLine("Words that change often, and an option that leaves them out")
	for _, p := range proposals {
		r.printLine("  %s", p.Why())
		r.printLine("    %s", option(p))
		r.printLine("    It %s.", p.Effect())
	}
}

// printExplanation prints e in order of time: the checks, the changes, the notifications with the
// results of their deliveries, and what did not match. f selected the notifications.
func (r *results) printExplanation(e inspect.Explanation, f inspect.ExplainFilter) {
	r.printPage(e.Page)
	several := len(e.Page.Documents) > 1
	nobody := "nobody notified"
	switch {
	case f.Client != "" && f.Keyword != "":
		nobody = fmt.Sprintf("client %q not notified of %q", f.Client, f.Keyword)
	case f.Client != "":
		nobody = fmt.Sprintf("client %q not notified", f.Client)
	case f.Keyword != "":
		nobody = fmt.Sprintf("nobody notified of %q", f.Keyword)
	}
	views := make(map[string]pipeline.View)
	for _, d := range e.Page.Documents {
		views[d.ID] = d.View
	}
	r.printLine("")
	r.printLine("Checks")
	if len(e.Checks) == 0 {
		r.printLine("  none is known")
	}
	printAll(r, "check", "  ", e.Checks, func(c inspect.Check) []string {
		return []string{formatTime(c.Time, r.now), checkName(c.Check), checkResult(c, several, r.now)}
	})
	if len(e.Checks) > 0 {
		if advice := inspect.AccessAdvice(e.Checks[0].Reason); advice != "" {
			r.printLine("  %s, or to watch with %s", advice, accessFlagNames)
		}
	}
	for _, c := range e.Changes {
		r.printJSON("change", c)
		r.printLine("")
		r.printChange(c, several, views[c.Document], nobody)
	}
	if len(e.Changes) == 0 {
		r.printLine("")
		r.printLine("No change is known.")
	}
	if len(e.Keywords) > 0 {
		r.printLine("")
		r.printLine("Keywords, in the last change")
	}
	printAll(r, "keyword", "  ", e.Keywords, func(k inspect.Keyword) []string {
		what := "matched"
		if !k.Matched {
			what = "did not match: " + k.Why
		}
		row := []string{k.Client, reportedText(k.Keyword, views[k.Document]), "", what}
		if several {
			row[2] = "document " + k.Document
		}
		return row
	})
	for _, p := range e.Proposals {
		r.printJSON("proposal", p)
	}
	r.printProposals(e.Proposals, inspect.Proposal.YAML)
}

// checkResult describes the result of c. It names the documents if the page has several.
func checkResult(c inspect.Check, several bool, now time.Time) string {
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
		parts = append(parts, fmt.Sprintf("as in the %s before it, since %s", countNoun(c.Repeats, "check"), formatTime(c.Since, now)))
	}
	s := strings.Join(append([]string{strings.Join(parts, ", ")}, c.Passed...), "; ")
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

// printChange prints c and the notifications that it caused, or nobody.
func (r *results) printChange(c inspect.Change, several bool, v pipeline.View, nobody string) {
	version := fmt.Sprintf("Version %d", c.Version)
	if several {
		version += " of document " + c.Document
	}
	notified := nobody
	if len(c.Matches) > 0 {
		notified = "notified"
	}
	if c.Status != "" {
		r.printLine("%s at %s (%s), %s", c.Outage(), formatTime(c.Time, r.now), c.Reason, notified)
	} else {
		r.printLine("%s, found by %s at %s, %s", version, checkName(c.Check), formatTime(c.Time, r.now), notified)
	}
	rows := make([][]string, 0, len(c.Matches))
	for _, m := range c.Matches {
		to := "by " + m.Sink
		if len(m.Via) > 0 {
			to += " via " + strings.Join(m.Via, ", ")
		}
		keywords := strings.Join(m.Keywords, ", ")
		if keywords == "" && c.Version > 0 {
			keywords = reportedText("", v)
		}
		rows = append(rows, []string{m.Client, keywords, to, r.deliveryText(m)})
	}
	r.printTable("  ", rows)
	if c.Omitted > 0 {
		r.printLine("  and %d more", c.Omitted)
	}
}

// deliveryText describes the state of the delivery of m.
func (r *results) deliveryText(m inspect.Match) string {
	tried := ""
	if m.Attempts > 0 {
		tried = " after " + countNoun(m.Attempts, "attempt")
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
		return "delivered at " + formatTime(m.DeliveryTime, r.now) + tried
	case inspect.DeliveryDigest:
		return "waits in a digest until " + formatTime(m.DeliveryTime, r.now)
	case inspect.DeliveryPending:
		next := ""
		if !m.DeliveryTime.IsZero() {
			next = ", tried next at " + formatTime(m.DeliveryTime, r.now)
		}
		return "not delivered yet" + tried + next + why
	case inspect.DeliveryDead:
		return "given up at " + formatTime(m.DeliveryTime, r.now) + tried + why + " (replay brings it back)"
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
