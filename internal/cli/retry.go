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
			if len(args) > 0 {
				url, err := onlyArg(cmd, args, "URL")
				if err == nil {
					err = checkPageURL(cmd, url)
				}
				if err != nil {
					return err
				}
				f.URL = url
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
	return a.withDelivery(cmd, dir, func(ctx context.Context, m process) error {
		err := a.checkSink(cmd, m, f.Sink)
		if err == nil {
			tried, err = m.Retry(ctx, f)
		}
		return err
	}, func(ctx context.Context, m process) error {
		switch {
		case len(tried) > 0:
		case f != vokter.RetryFilter{}:
			return matchesNothing("no such notification is pending; list --sinks shows the state of each sink")
		default:
			m.out.printLine("no notification is pending")
			return nil
		}
		left, err := m.Receivers(ctx, inspect.ListFilter{}) // with notifications that are still pending
		if err != nil {
			return err
		}
		var failed []error
		for _, t := range tried {
			m.out.printJSON("retry", t)
			i := slices.IndexFunc(left, func(rc inspect.Receiver) bool { return rc.Sink == t.Sink })
			switch {
			case t.Elsewhere:
				m.out.printLine("%s: another process owns it and was asked to attempt its notifications", t.Sink)
			case m.router == nil:
				m.out.printLine("%s: %s attempted now", t.Sink, notificationsAre(t.Waiting))
			case i < 0 || left[i].Pending == 0:
				m.out.printLine("%s: no notification is pending any more", t.Sink)
			default:
				failed = append(failed, fmt.Errorf("sink %s: %s still pending: %s", t.Sink, notificationsAre(left[i].Pending), left[i].Reason))
			}
		}
		return errors.Join(failed...)
	})
}

// notificationsAre returns "1 notification is" or "N notifications are".
func notificationsAre(n int) string {
	if n == 1 {
		return "1 notification is"
	}
	return fmt.Sprintf("%d notifications are", n)
}
