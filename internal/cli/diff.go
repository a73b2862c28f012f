package cli

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/compare"
)

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
