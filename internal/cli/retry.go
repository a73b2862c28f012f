package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
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
	ctx := cmd.Context()
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	running, silent := findProcess(ctx, dir)
	switch {
	case running != nil:
		defer running.Close()
		if err := a.checkSink(cmd, running, f.Sink); err != nil {
			return err
		}
		return a.retryInProcess(ctx, running, f)
	case isCache(dir):
		return cacheError(dir, silent)
	case a.flags.config == "":
		return newUsageError(cmd, "no process runs on %s, or none that can be reached (%w): to deliver without one, name the sinks with -c FILE", dir, silent)
	}
	return a.retryDirectly(cmd, silent, f)
}

// retryInProcess makes the running process attempt the notifications that f selects.
func (a *app) retryInProcess(ctx context.Context, m manage.Manager, f vokter.RetryFilter) error {
	tried, err := m.Retry(ctx, f)
	if err != nil {
		return err
	}
	out := a.newResults()
	for _, t := range tried {
		out.printJSON(retryLine{"retry", t})
		if t.Elsewhere {
			out.printLine("%s: another process owns it and was asked to attempt its notifications", t.Sink)
		} else {
			out.printLine("%s: %s attempted now", t.Sink, notificationsAre(t.Waiting))
		}
	}
	return errors.Join(checkAnyRetried(out, f, tried), out.flush())
}

// retryDirectly attempts the notifications that f selects with the sinks of the configuration. It
// prints which of them are still pending.
func (a *app) retryDirectly(cmd *cobra.Command, silent error, f vokter.RetryFilter) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	if err := checkSinkInConfig(cmd, f.Sink, c.Router); err != nil {
		return err
	}
	cfg := c.Router
	cfg.Mode = vokter.ModeDeliver
	cfg.Logger = a.flags.logger(a.stderr, slog.LevelWarn)
	var tried []vokter.Retried
	_, err = a.withRouter(cmd.Context(), cfg, silent, func(ctx context.Context, r *vokter.Router) (err error) {
		tried, err = r.Retry(ctx, f)
		return err
	})
	if err != nil {
		return err
	}
	var after []inspect.Receiver
	err = a.withManager(cmd.Context(), cfg.Dir, func(ctx context.Context, m manage.Manager) error {
		l, err := m.List(ctx, inspect.ListFilter{})
		after = l.Receivers
		return err
	})
	if err != nil {
		return err
	}
	out := a.newResults()
	var failed []error
	for _, t := range tried {
		out.printJSON(retryLine{"retry", t})
		i := slices.IndexFunc(after, func(rc inspect.Receiver) bool { return rc.Sink == t.Sink })
		if i < 0 || after[i].Pending == 0 {
			out.printLine("%s: no notification is pending any more", t.Sink)
			continue
		}
		failed = append(failed, fmt.Errorf("sink %s: %s still pending: %s", t.Sink, notificationsAre(after[i].Pending), after[i].Reason))
	}
	failed = append(failed, checkAnyRetried(out, f, tried), out.flush())
	return errors.Join(failed...)
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
