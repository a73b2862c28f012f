package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/compare"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

func (a *app) historyVerb() *cobra.Command {
	var (
		f     inspect.DocumentFilter
		asCSV bool
	)
	cmd := a.documentVerb(&cobra.Command{
		Use:   "history URL (--data DIR | -c FILE)",
		Short: "Lists the stored versions of a page",
		Long: "Lists the stored versions of a page, the newest first: when each was found, how many words were removed (-), were added (+) and moved (~), and who was notified. " +
			"show prints the text of a version, diff compares two versions, grep finds words in them.",
		Example: `  vokter-stream history https://example.com/terms -c vokter.yaml`,
		Args: func(cmd *cobra.Command, _ []string) error {
			if asCSV && a.flags.format != "" {
				return newUsageError(cmd, "--csv: it is a format of its own; leave it or --format out")
			}
			return nil
		},
	}, &f, func(ctx context.Context, m process, url string) error {
		h, err := m.Versions(ctx, url, f)
		switch {
		case err != nil:
			return err
		case asCSV:
			return a.writeHistoryCSV(h)
		}
		m.out.printHistory(h)
		return nil
	})
	cmd.Flags().BoolVar(&asCSV, "csv", false, "write the versions as CSV, the oldest first: version, time, value, unit, title")
	return cmd
}

// writeHistoryCSV writes the versions of h, the oldest first.
func (a *app) writeHistoryCSV(h inspect.History) error {
	w := csv.NewWriter(a.stdout)
	if err := w.Write([]string{"version", "time", "value", "unit", "title"}); err != nil {
		return err
	}
	for _, v := range slices.Backward(h.Versions) {
		value, unit := v.Value, ""
		if h.View.Value != nil && !h.View.Value.Text() {
			value, unit, _ = strings.Cut(v.Value, " ")
		}
		cells := []string{strconv.FormatUint(v.N, 10), v.Time.UTC().Format(time.RFC3339), value, unit, v.Title}
		for i := 2; i < len(cells); i++ {
			cells[i] = render.Clean(cells[i])
			if cells[i] != "" && strings.ContainsAny(cells[i][:1], "=+@\t") {
				cells[i] = "'" + cells[i] // a spreadsheet would take it for a formula
			}
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (a *app) showVerb() *cobra.Command {
	var (
		f inspect.DocumentFilter
		n uint64
	)
	cmd := a.documentVerb(&cobra.Command{
		Use:   "show URL (--data DIR | -c FILE)",
		Short: "Prints the text of a version of a page",
		Long: "Prints the text of a version of a page, as it is compared. The offsets in notifications are bytes of this text, as --format json " +
			"prints it; the text for people has no characters that could steer a terminal, and no empty lines.",
		Example: `  vokter-stream show https://example.com/terms -c vokter.yaml
  vokter-stream show https://example.com/terms --version 3 -c vokter.yaml`,
		Args: func(cmd *cobra.Command, _ []string) error { return checkVersionFlags(cmd, "version") },
	}, &f, func(ctx context.Context, m process, url string) error {
		t, err := m.Text(ctx, url, n, f)
		if err != nil {
			return err
		}
		m.out.printJSON("text", t)
		for line := range strings.SplitSeq(t.Text, "\n") {
			if strings.TrimSpace(line) != "" {
				m.out.printLine("%s", line)
			}
		}
		return nil
	})
	cmd.Flags().Uint64Var(&n, "version", 0, "the `NUMBER` of the version (default the current one)")
	return cmd
}

// checkVersionFlags returns an error if one of the flags, numbers of versions, was given as 0.
func checkVersionFlags(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if cmd.Flags().Changed(name) && cmd.Flags().Lookup(name).Value.String() == "0" {
			return newUsageError(cmd, "--%s: versions are numbered from 1; history lists those that are stored", name)
		}
	}
	return nil
}

func (a *app) grepVerb() *cobra.Command {
	var (
		f           inspect.OccurrenceFilter
		offset      int
		color, term string
	)
	cmd := a.documentVerb(&cobra.Command{
		Use:   "grep URL TERM (--data DIR | -c FILE)",
		Short: "Finds a word or phrase in the stored versions of a page",
		Long: "Finds a word or phrase in the stored versions of a page, as a subscription compares words: the versions that have it, the number of its first " +
			"word in the text, its bytes in the text, and its context.",
		Example: `  vokter-stream grep https://example.com/terms "personal data" -c vokter.yaml`,
	}, &f.DocumentFilter, func(ctx context.Context, m process, url string) error {
		o, err := m.Occurrences(ctx, url, term, f)
		if err != nil {
			return err
		}
		if len(o.Occurrences) == 0 {
			hint := ""
			switch {
			case f.Stem:
			case f.MatchCase:
				hint = "; --stem, or no --match-case, finds more"
			default:
				hint = "; --stem finds more"
			}
			return matchesNothing(fmt.Sprintf("%q is %s%s", o.Term, notFoundText(len(o.Versions)), hint))
		}
		m.out.printOccurrences(o, a.useColor(color))
		return nil
	})
	find := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return newUsageError(cmd, "name a page and a word or phrase; write %s URL TERM (--data DIR | -c FILE)", cmd.CommandPath())
		}
		if err := errors.Join(checkVersionFlags(cmd, "version"), checkColor(cmd, color)); err != nil {
			return err
		}
		if cmd.Flags().Changed("snippet-offset") {
			f.SnippetOffset = &offset
		}
		term = args[1]
		return find(cmd, slices.Delete(slices.Clone(args), 1, 2))
	}
	fs := cmd.Flags()
	fs.Uint64Var(&f.Version, "version", 0, "search only the version with this `NUMBER` (default all stored ones)")
	fs.BoolVar(&f.MatchCase, "match-case", false, "tell capital and small letters apart")
	fs.BoolVar(&f.IgnoreDiacritics, "ignore-diacritics", false, "ignore accents and other marks of letters")
	fs.BoolVar(&f.Stem, "stem", false, "find other forms of a word, such as cats for cat, whatever their case")
	fs.BoolVar(&f.FilterStopwords, "filter-stopwords", false, "ignore stop words, such as the and of")
	fs.StringVar(&f.Match, "match", "", "`HOW` the words are found: phrase, or terms to find each of them (default phrase; terms with --filter-stopwords)")
	fs.StringVar(&f.Language, "language", "", "the `TAG` of the page's language, such as en (default that of the version)")
	fs.IntVar(&offset, "snippet-offset", 50, "`N` characters of context on each side")
	addColorFlag(fs, &color)
	return cmd
}

// printHistory prints the versions of h.
func (r *results) printHistory(h inspect.History) {
	r.printLine("%s", h.URL)
	if !h.View.IsZero() {
		r.printLine("  document %s (%s)", h.Document, strings.Join(config.Settings(pipeline.Subscription{View: h.View}), ", "))
	}
	if len(h.Versions) == 0 {
		r.printLine("  no version is stored yet")
	}
	printAll(r, "version", "  ", h.Versions, func(v inspect.Version) []string {
		change := sizeText(v)
		if h.View.Value != nil {
			change = v.Value
		}
		return []string{fmt.Sprintf("version %d", v.N), formatTime(v.Time, r.now), checkName(v.Check), change, notifiedText(v)}
	})
}

// sizeText says how many words were removed (-), were added (+) and moved (~) with v.
func sizeText(v inspect.Version) string {
	switch {
	case v.Baseline:
		return "baseline"
	case v.Size == nil:
		return "not compared"
	}
	var parts []string
	for _, p := range []struct {
		sign string
		n    int
	}{{"-", v.Size.Removed}, {"+", v.Size.Added}, {"~", v.Size.Moved}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", p.sign, p.n))
		}
	}
	if len(parts) == 0 {
		return "no word changed"
	}
	return strings.Join(parts, " ") + fmt.Sprintf(" of %s", countNoun(v.Size.Length(), "word"))
}

// maxNamedNotifications is how many notifications one line of history names.
const maxNamedNotifications = 3

// notifiedText says who was notified of v.
func notifiedText(v inspect.Version) string {
	switch {
	case v.Forgotten:
		return "too long ago to know who was notified"
	case len(v.Matches) == 0 && v.Baseline:
		return ""
	case len(v.Matches) == 0:
		return "nobody notified"
	}
	var names []string
	for _, m := range v.Matches[:min(len(v.Matches), maxNamedNotifications)] {
		state := ""
		switch m.Delivery {
		case inspect.DeliveryDelivered:
		case inspect.DeliveryElsewhere:
			state = ", by another process"
		default:
			state = ", " + m.Delivery
		}
		names = append(names, fmt.Sprintf("%s (%s%s)", m.Client, m.Sink, state))
	}
	if more := len(v.Matches) - len(names) + v.Omitted; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "notified " + strings.Join(names, ", ")
}

// notFoundText says that a term is in none of n stored versions.
func notFoundText(n int) string {
	if n == 1 {
		return "not in the one version that was searched"
	}
	return fmt.Sprintf("in none of the %d versions that were searched", n)
}

// printOccurrences prints o.
func (r *results) printOccurrences(o inspect.Occurrences, color bool) {
	for _, found := range o.Occurrences {
		r.printJSON("occurrence", found)
		if r.json || len(found.Places) == 0 {
			continue
		}
		var versions []uint64
		for _, p := range found.Places {
			versions = append(versions, p.Version)
		}
		at := found.Places[0]
		where := fmt.Sprintf("%s: word %d, bytes %d-%d", versionRange(versions), at.Position, at.Start, at.End)
		if len(versions) > 1 {
			where += fmt.Sprintf(" of version %d", at.Version)
		}
		r.printLine("%s", where)
		snippet := render.Wrap("  "+render.Clean(found.Snippet), r.columns, 0)
		if term := render.Clean(found.Text); color && term != "" {
			snippet = strings.Replace(snippet, term, "\x1b[1;31m"+term+"\x1b[0m", 1)
		}
		r.write(snippet + "\n")
	}
	if o.Omitted > 0 {
		r.printLine("and %d more", o.Omitted)
	}
}

// versionRange names versions, which are in falling order: "versions 2-5, 7".
func versionRange(versions []uint64) string {
	if len(versions) == 1 {
		return fmt.Sprintf("version %d", versions[0])
	}
	var parts []string
	for i := len(versions) - 1; i >= 0; {
		first := versions[i]
		for i--; i >= 0 && versions[i] == versions[i+1]+1; i-- {
		}
		if last := versions[i+1]; last != first {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		} else {
			parts = append(parts, fmt.Sprint(first))
		}
	}
	return "versions " + strings.Join(parts, ", ")
}

// defaultContext is how many unchanged blocks diff prints around each change.
const defaultContext = 2

func (a *app) diffVerb() *cobra.Command {
	var (
		f          inspect.DiffFilter
		all, aside bool
		width      int
		color      string
	)
	cmd := a.documentVerb(&cobra.Command{
		Use:   "diff URL (--data DIR | -c FILE)",
		Short: "Compares two versions of a page, word by word",
		Long: "Compares two stored versions of a page, word by word, as notifications see them. A line with - is of the older version, one with + of the " +
			"newer one, one with ~ only moved. Removed and added words are coloured on a terminal, and stand in [-...-] and {+...+} elsewhere.",
		Example: `  vokter-stream diff https://example.com/terms -c vokter.yaml
  vokter-stream diff https://example.com/terms --from 3 -y -c vokter.yaml`,
		Args: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.Context < 0:
				return newUsageError(cmd, "--context: must be at least 0, not %d; --all prints the whole text", f.Context)
			case width < 0:
				return newUsageError(cmd, "--width: must be at least 1, not %d", width)
			case all:
				f.Context = -1
			}
			return errors.Join(checkVersionFlags(cmd, "from", "to"), checkColor(cmd, color))
		},
	}, &f.DocumentFilter, func(ctx context.Context, m process, url string) error {
		d, err := m.Diff(ctx, url, f)
		if err != nil {
			return err
		}
		style := compare.Style{Color: a.useColor(color), Columns: cmp.Or(width, m.out.columns)}
		m.out.printDifference(d, style, aside)
		return nil
	})
	fs := cmd.Flags()
	fs.Uint64Var(&f.From, "from", 0, "the `NUMBER` of the older version (default the one before --to)")
	fs.Uint64Var(&f.To, "to", 0, "the `NUMBER` of the newer version (default the current one)")
	fs.IntVar(&f.Context, "context", defaultContext, "print `N` unchanged paragraphs around each change")
	fs.BoolVar(&all, "all", false, "print the whole text")
	fs.BoolVarP(&aside, "side-by-side", "y", false, "print the versions side by side")
	fs.IntVar(&width, "width", 0, "print lines of at most `N` columns (default that of the terminal)")
	addColorFlag(fs, &color)
	return cmd
}

// printDifference prints d.
func (r *results) printDifference(d inspect.Difference, style compare.Style, aside bool) {
	r.printJSON("difference", d)
	changes := d.To
	changes.Baseline, changes.Size = false, &d.Size
	r.printLine("%s", d.URL)
	r.printLine("version %d of %s → version %d of %s: %s", d.From.N, formatTime(d.From.Time, r.now), d.To.N, formatTime(d.To.Time, r.now), sizeText(changes))
	if r.json {
		return
	}
	r.printLine("")
	if aside {
		r.write(compare.SideBySide(d.Rows, style))
	} else {
		r.write(compare.Unified(d.Rows, style))
	}
}

func addColorFlag(fs *pflag.FlagSet, color *string) {
	fs.StringVar(color, "color", "", "use colors `WHEN`: always or never (default on a terminal)")
}

func checkColor(cmd *cobra.Command, color string) error {
	if color != "" && color != "always" && color != "never" {
		return newUsageError(cmd, "--color: %q is neither always nor never", color)
	}
	return nil
}

// useColor reports whether results are colored: given is always, never or empty for a terminal.
func (a *app) useColor(given string) bool {
	if given != "" {
		return given == "always"
	}
	// https://no-color.org
	return terminalColumns(a.stdout) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
