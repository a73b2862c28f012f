package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxListFile is the largest file of a list of subscriptions, in bytes.
const maxListFile = 64 << 20

func (a *app) applyVerb() *cobra.Command {
	var (
		origin string
		dry    bool
	)
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "apply LIST --origin NAME (--data DIR | -c FILE)",
		Short: "Makes a list of subscriptions the one that is in force",
		Long: "Makes the subscriptions in LIST all that the origin NAME has, in the process that runs the data directory or, if it is stopped, for its " +
			"next start: what is new is added, what differs is changed without a new baseline, and what an earlier list of that origin had and this one " +
			"lacks is cancelled. An empty list, [] or subscriptions: [], cancels all. Other subscriptions stay. LIST is a configuration as export writes it, of which only the " +
			"subscriptions count, or a list in JSON as the API takes it; - is standard input. A subscription that cannot be taken is refused alone, and " +
			"the exit code is then 1. What is unchanged is only counted, except in JSON.",
		Example: `  vokter-stream apply crm.json --origin crm --dry-run -c vokter.yaml
  vokter-stream apply subscriptions.yaml --origin shop --data /var/lib/vokter`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onlyArg(cmd, args, "LIST")
			switch {
			case err != nil:
				return err
			case origin == "":
				return newUsageError(cmd, "no origin is given; name the list with --origin NAME, always the same for the same list")
			}
			list, err := a.readList(name)
			if err != nil {
				return err
			}
			dir, err := a.startableDirectory(cmd)
			if err != nil {
				return err
			}
			return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error {
				if m.router != nil { // which knows no sinks
					for _, sink := range sinksIn(list) {
						if err := a.checkSink(cmd, m, sink); err != nil {
							return newUsageError(cmd, "%s: %s", name, strings.TrimPrefix(err.Error(), "--sink: "))
						}
					}
				}
				done, err := m.ApplyFrom(ctx, origin, bytes.NewReader(list), dry)
				if err != nil {
					return err
				}
				return printApplied(m.out, origin, done, dry)
			})
		},
	}, askFlags)
	cmd.Flags().StringVar(&origin, "origin", "", "the `NAME` of the list")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing; print what would change")
	return cmd
}

// readList returns the subscriptions in the file called name as a list in JSON.
func (a *app) readList(name string) ([]byte, error) {
	data, err := a.readInput(name, maxListFile)
	if err != nil {
		return nil, &usageError{err: err}
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) {
		return data, nil
	}
	c, err := config.Parse(name, data, config.Options{Registry: a.plugins(), Allow: a.flags.allow, Files: a.flags.allowFiles})
	if err != nil {
		return nil, err
	}
	defer closeSinks(c.Router.Sinks)
	// What a failed command printed, or the wrong file, must not cancel a list.
	if len(c.Router.Subscriptions) == 0 && !bytes.Contains(data, []byte("subscriptions")) {
		return nil, &usageError{err: fmt.Errorf("%s has no subscriptions; write [] or subscriptions: [] to cancel all of the list", name)}
	}
	return json.Marshal(c.Router.Subscriptions)
}

// sinksIn returns the names of the sinks in a list in JSON, each once.
func sinksIn(list []byte) []string {
	var entries []json.RawMessage
	_ = json.Unmarshal(list, &entries) // the API says what is wrong with it
	var names []string
	for _, e := range entries {
		var s struct{ Sinks []string }
		_ = json.Unmarshal(e, &s)
		for _, name := range s.Sinks {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// printApplied prints what became of the list called origin.
func printApplied(out *results, origin string, r flow.ApplyReport, dry bool) error {
	var rows [][]string
	for _, s := range r.Subscriptions {
		out.printJSON("subscription", s)
		if s.Outcome == flow.AppliedUnchanged && s.Reason == "" {
			continue
		}
		entry := ""
		if s.Entry > 0 {
			entry = strconv.Itoa(s.Entry)
		}
		rows = append(rows, []string{s.Outcome, entry, s.URL, s.Client, s.Reason})
	}
	out.printTable("", rows)
	would := "%s: "
	if dry {
		would = "%s, not applied: "
	}
	out.printDone("applied", struct {
		Origin string `json:"origin"`
		flow.ApplyCounts
		DryRun bool `json:"dry_run,omitempty"`
	}{origin, r.ApplyCounts, dry}, would+"%d created, %d changed, %d unchanged, %d removed, %d refused", origin, r.Created, r.Changed, r.Unchanged, r.Removed, r.Refused)
	if r.Refused > 0 {
		return fmt.Errorf("%s refused; correct the list and apply it again", countNoun(r.Refused, "subscription"))
	}
	return nil
}
