package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
)

// retryLine is the JSON of retry about one receiver.
type retryLine struct {
	Kind string `json:"kind"`
	vokter.Retried
}

func (a *app) retryVerb() *cobra.Command {
	var f vokter.RetryFilter
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "retry [URL] [--sink NAME] (--data DIR | -c FILE)",
		Short: "Attempts pending notifications now, not when they are due",
		Long: "Attempts to deliver pending notifications now, not when their next attempt is due: those of all sinks, of one, or " +
			"with a URL those of all sinks with a pending notification about that page. Each sink gets them in order. A digest " +
			"still waits for its time.\n\n" +
			"A running process makes the attempts itself; list --sinks shows the results. Where no process runs, this one delivers, " +
			"with the sinks of -c FILE, and ends.",
		Example: `  vokter-stream retry --sink ops -c vokter.yaml
  vokter-stream retry https://example.com/terms --data ./data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return newUsageError(cmd, "%s takes one URL, but got %q as well", cmd.Name(), args[1])
			}
			if len(args) == 1 {
				f.URL = args[0]
				if err := checkPageURL(cmd, f.URL); err != nil {
					return err
				}
			}
			return a.retryPending(cmd, f)
		},
	}, outputFlags|pipelineFlags|configFlags)
	cmd.Flags().StringVar(&f.Sink, "sink", "", "only the sink `NAME`")
	return cmd
}

func (a *app) retryPending(cmd *cobra.Command, f vokter.RetryFilter) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	var tried []vokter.Retried
	delivered, err := a.withDelivery(cmd, dir, func(ctx context.Context, m process) error {
		err := a.checkSink(cmd, m, f.Sink)
		if err == nil {
			tried, err = m.Retry(ctx, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	var left []inspect.Receiver // receivers with notifications that are still pending
	if delivered {
		err := a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) (err error) {
			left, err = m.Receivers(ctx, inspect.ListFilter{})
			return err
		})
		if err != nil {
			return err
		}
	}
	out := a.newResults()
	var failed []error
	for _, t := range tried {
		out.printJSON(retryLine{"retry", t})
		i := slices.IndexFunc(left, func(rc inspect.Receiver) bool { return rc.Sink == t.Sink })
		switch {
		case t.Elsewhere:
			out.printLine("%s: another process owns it and was asked to attempt its notifications", t.Sink)
		case !delivered:
			out.printLine("%s: %s attempted now", t.Sink, notificationsAre(t.Waiting))
		case i < 0 || left[i].Pending == 0:
			out.printLine("%s: no notification is pending any more", t.Sink)
		default:
			failed = append(failed, fmt.Errorf("sink %s: %s still pending: %s", t.Sink, notificationsAre(left[i].Pending), left[i].Reason))
		}
	}
	return errors.Join(append(failed, checkAnyRetried(out, f, tried), out.flush())...)
}

// checkAnyRetried reports that nothing was retried if tried is empty: as an error if f is a filter, otherwise as text.
func checkAnyRetried(out *results, f vokter.RetryFilter, tried []vokter.Retried) error {
	switch {
	case len(tried) > 0:
	case f != vokter.RetryFilter{}:
		return errors.New("no such notification is pending; list --sinks shows the state of each sink")
	default:
		out.printLine("no notification is pending")
	}
	return nil
}

// notificationsAre returns "1 notification is" or "N notifications are".
func notificationsAre(n int) string {
	if n == 1 {
		return "1 notification is"
	}
	return fmt.Sprintf("%d notifications are", n)
}
