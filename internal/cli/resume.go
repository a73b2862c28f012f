package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
)

func (a *app) resumeVerb() *cobra.Command {
	var (
		of, sink string
		all      bool
	)
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "resume [URL] (--data DIR | -c FILE)",
		Short: "Restarts expired and paused subscriptions from a new baseline",
		Example: `  vokter-stream resume https://example.com/terms -c vokter.yaml
  vokter-stream resume --sink ops -c vokter.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch several := all || sink != ""; {
			case all && sink != "":
				return newUsageError(cmd, "--all resumes the expired subscriptions to every sink; leave it or --sink out")
			case several && len(args) > 0:
				return newUsageError(cmd, "give a URL, or --sink or --all without one")
			case several:
				return a.resumeExpired(cmd, sink, of)
			}
			return a.withPage(cmd, args, func(ctx context.Context, m process, url string) error {
				return resumePage(ctx, m, url, of)
			})
		},
	}, askFlags)
	fs := cmd.Flags()
	fs.StringVar(&of, "client", "", "only the subscriptions of the client `NAME` (default all)")
	fs.StringVar(&sink, "sink", "", "all expired subscriptions to the sink `NAME`")
	fs.BoolVar(&all, "all", false, "all expired subscriptions")
	return cmd
}

func resumePage(ctx context.Context, m process, url, of string) error {
	subs, err := loadSubscriptions(ctx, m, url)
	if err != nil {
		return err
	}
	if err := m.Resume(ctx, url, of); err != nil {
		subs = slices.DeleteFunc(subs, func(s inspect.Subscription) bool { return s.State == inspect.StateActive })
		if of != "" && isNotFound(err) && len(subs) > 0 {
			return fmt.Errorf("no subscription of client %q to %s is expired or paused; name a client that has one with --client: %s", of, url, clientNames(subs))
		}
		return err
	}
	m.out.printDone("resumed", client.Target{URL: url, Client: of}, "%s is watched again, from a fresh baseline", url)
	return nil
}

// resumeExpired resumes the expired subscriptions of all pages that name sink and belong to the client of. An empty
// sink or client means all.
func (a *app) resumeExpired(cmd *cobra.Command, sink, of string) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error {
		if err := a.checkSink(cmd, m, sink); err != nil {
			return err
		}
		l, err := m.List(ctx, inspect.ListFilter{Client: of})
		if err != nil {
			return err
		}
		if err := a.printLanes(ctx, m); err != nil {
			return err
		}
		var failed []error
		resumed := 0
		for _, d := range expiredSubscriptions(l.Pages, sink) {
			if err := m.Resume(ctx, d.URL, d.Client); err != nil && !isNotFound(err) {
				failed = append(failed, fmt.Errorf("%s for client %s: %w", d.URL, d.Client, err))
				continue
			}
			resumed++
			m.out.printDone("resumed", d, "%s is watched again for client %s, from a fresh baseline", d.URL, d.Client)
		}
		switch {
		case resumed > 0 || len(failed) > 0:
		case sink != "" || of != "":
			return matchesNothing("no such subscription is expired; list shows which ones are, and why")
		default:
			m.out.printLine("no subscription is expired")
		}
		return errors.Join(failed...)
	})
}

// expiredSubscriptions returns the pairs of page and client with an expired subscription to sink. An empty
// sink means any.
func expiredSubscriptions(pages []inspect.Page, sink string) []client.Target {
	var found []client.Target
	for _, p := range pages {
		for _, s := range p.Subscriptions {
			d := client.Target{URL: p.URL, Client: s.Client}
			if s.State == inspect.StateExpired && (sink == "" || slices.Contains(s.Sinks, sink)) && !slices.Contains(found, d) {
				found = append(found, d)
			}
		}
	}
	return found
}
