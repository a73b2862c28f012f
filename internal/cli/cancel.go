package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// doneLine is the JSON of a command that was carried out.
type doneLine struct {
	Kind   string `json:"kind"`
	URL    string `json:"url"`
	Client string `json:"client,omitempty"`
}

func (a *app) cancel() *cobra.Command {
	var client string
	cmd := a.flags.with(&cobra.Command{
		Use:   "cancel URL (--data DIR | -c FILE)",
		Short: "Ends the subscriptions of a client on a page",
		Long:  "Ends the subscriptions of a client on a page, and drops their pending notifications.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onPage(cmd, args, func(ctx context.Context, m manage.Manager, url string) error {
				return a.cancelPage(ctx, m, url, client)
			})
		},
	}, outputFlags|directoryFlags|configFlags)
	cmd.Flags().StringVar(&client, "client", "default", "the `NAME` of the client")
	return cmd
}

func (a *app) cancelPage(ctx context.Context, m manage.Manager, url, client string) error {
	subs, err := subscriptions(ctx, m, url)
	if err != nil {
		return err
	}
	if err := m.Cancel(ctx, url, client); err != nil {
		if notFound(err) && len(subs) > 0 {
			return fmt.Errorf("client %q does not watch %s; name one that does with --client: %s", client, url, clientsOf(subs))
		}
		return err
	}
	for _, s := range subs {
		if s.Client == client && s.Origin == config.Origin {
			fmt.Fprintf(a.stderr, "vokter-stream: a configuration has this subscription; remove it there, or the next start adds it again\n")
			break
		}
	}
	out := a.results()
	out.object(doneLine{"cancelled", url, client})
	out.text("client %s does not watch %s any more", client, url)
	return out.end()
}

func (a *app) resume() *cobra.Command {
	var (
		client, sink string
		all          bool
	)
	cmd := a.flags.with(&cobra.Command{
		Use:   "resume [URL] (--data DIR | -c FILE)",
		Short: "Restarts expired and paused subscriptions from a new baseline",
		Example: `  vokter-stream resume https://example.com/terms -c vokter.yaml
  vokter-stream resume --sink ops -c vokter.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch several := all || sink != ""; {
			case all && sink != "":
				return usage(cmd, "--all resumes the expired subscriptions to every sink; leave it or --sink out")
			case several && len(args) > 0:
				return usage(cmd, "give a URL, or --sink or --all without one")
			case several:
				return a.resumeSeveral(cmd, sink, client)
			}
			return a.onPage(cmd, args, func(ctx context.Context, m manage.Manager, url string) error {
				return a.resumePage(ctx, m, url, client)
			})
		},
	}, outputFlags|directoryFlags|configFlags)
	fs := cmd.Flags()
	fs.StringVar(&client, "client", "", "only the subscriptions of the client `NAME` (default all)")
	fs.StringVar(&sink, "sink", "", "all expired subscriptions to the sink `NAME`")
	fs.BoolVar(&all, "all", false, "all expired subscriptions")
	return cmd
}

func (a *app) resumePage(ctx context.Context, m manage.Manager, url, client string) error {
	subs, err := subscriptions(ctx, m, url)
	if err != nil {
		return err
	}
	if err := m.Resume(ctx, url, client); err != nil {
		subs = slices.DeleteFunc(subs, func(s inspect.Subscription) bool { return s.State == inspect.StateActive })
		if notFound(err) && len(subs) > 0 {
			return fmt.Errorf("no subscription of client %q to %s is expired or paused; name a client that has one with --client: %s", client, url, clientsOf(subs))
		}
		return err
	}
	out := a.results()
	out.object(doneLine{"resumed", url, client})
	out.text("%s is watched again, from a fresh baseline", url)
	return out.end()
}

// resumeSeveral resumes the expired subscriptions of all pages that name sink and belong to
// client. An empty sink or client means all.
func (a *app) resumeSeveral(cmd *cobra.Command, sink, client string) error {
	dir, err := a.directory(cmd)
	if err != nil {
		return err
	}
	return a.managed(cmd.Context(), dir, func(ctx context.Context, m manage.Manager) error {
		if err := a.checkSink(cmd, m, sink); err != nil {
			return err
		}
		l, err := m.List(ctx, inspect.ListFilter{Client: client})
		if err != nil {
			return err
		}
		if err := a.sayLanes(ctx, m); err != nil {
			return err
		}
		out := a.results()
		var failed []error
		resumed := 0
		for _, d := range expiredOf(l.Pages, sink) {
			if err := m.Resume(ctx, d.URL, d.Client); err != nil && !notFound(err) {
				failed = append(failed, fmt.Errorf("%s for client %s: %w", d.URL, d.Client, err))
				continue
			}
			resumed++
			out.object(d)
			out.text("%s is watched again for client %s, from a fresh baseline", d.URL, d.Client)
		}
		switch {
		case resumed > 0 || len(failed) > 0:
		case sink != "" || client != "":
			failed = append(failed, errors.New("no such subscription is expired; list shows which ones are, and why"))
		default:
			out.text("no subscription is expired")
		}
		return errors.Join(append(failed, out.end())...)
	})
}

// expiredOf returns the pairs of page and client with an expired subscription to sink. An empty
// sink means any.
func expiredOf(pages []inspect.Page, sink string) []doneLine {
	var found []doneLine
	for _, p := range pages {
		for _, s := range p.Subscriptions {
			d := doneLine{"resumed", p.URL, s.Client}
			if s.State == inspect.StateExpired && (sink == "" || slices.Contains(s.Sinks, sink)) && !slices.Contains(found, d) {
				found = append(found, d)
			}
		}
	}
	return found
}

// onPage calls do with the Manager of the directory that the flags name, and the URL in args.
func (a *app) onPage(cmd *cobra.Command, args []string, do func(context.Context, manage.Manager, string) error) error {
	switch {
	case len(args) == 0:
		return usage(cmd, "no URL is given; write %s URL (--data DIR | -c FILE)", cmd.CommandPath())
	case len(args) > 1:
		return usage(cmd, "%s takes one URL, but got %q as well", cmd.Name(), args[1])
	}
	if err := checkPage(cmd, args[0]); err != nil {
		return err
	}
	dir, err := a.directory(cmd)
	if err != nil {
		return err
	}
	return a.managed(cmd.Context(), dir, func(ctx context.Context, m manage.Manager) error { return do(ctx, m, args[0]) })
}

// checkPage returns an error if url is not the URL of a page.
func checkPage(cmd *cobra.Command, url string) error {
	if _, err := pageurl.Canonical(url); err != nil {
		return usage(cmd, "%w", err)
	}
	return nil
}

// subscriptions returns the subscriptions of all clients to the page of url that m knows. Where
// several processes share the pages, only the owner of the page knows them.
func subscriptions(ctx context.Context, m manage.Manager, url string) ([]inspect.Subscription, error) {
	l, err := m.List(ctx, inspect.ListFilter{URL: url})
	if err != nil && !errors.Is(err, inspect.ErrElsewhere) {
		return nil, err
	}
	var all []inspect.Subscription
	for _, p := range l.Pages {
		all = append(all, p.Subscriptions...)
	}
	return all, nil
}

// clientsOf lists the clients of subs.
func clientsOf(subs []inspect.Subscription) string {
	var names []string
	for _, s := range subs {
		names = append(names, fmt.Sprintf("%q", s.Client))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func notFound(err error) bool {
	refused, ok := errors.AsType[*flow.Refusal](err)
	return ok && refused.Code == flow.CodeNotFound
}
