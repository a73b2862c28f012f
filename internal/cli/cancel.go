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
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// doneLine is the JSON of a command that was carried out.
type doneLine struct {
	Kind   string `json:"kind"`
	URL    string `json:"url"`
	Client string `json:"client,omitempty"`
}

func (a *app) cancelVerb() *cobra.Command {
	var client string
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "cancel URL (--data DIR | -c FILE)",
		Short: "Ends the subscriptions of a client on a page",
		Long:  "Ends the subscriptions of a client on a page, and drops their pending notifications.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPage(cmd, args, func(ctx context.Context, m process, url string) error {
				return a.cancelPage(ctx, m, url, client)
			})
		},
	}, outputFlags|directoryFlags|configFlags)
	cmd.Flags().StringVar(&client, "client", "default", "the `NAME` of the client")
	return cmd
}

func (a *app) cancelPage(ctx context.Context, m process, url, client string) error {
	subs, err := loadSubscriptions(ctx, m, url)
	if err != nil {
		return err
	}
	if err := m.Cancel(ctx, url, client); err != nil {
		return namingClients(err, subs, url, client)
	}
	for _, s := range subs {
		if s.Client == client && s.Origin == config.Origin {
			fmt.Fprintf(a.stderr, "vokter-stream: a configuration has this subscription; remove it there, or the next start adds it again\n")
			break
		}
	}
	return a.printDone(doneLine{"cancelled", url, client}, "client %s does not watch %s any more", client, url)
}

// withPage calls do with the Manager of the directory that the flags name, and the URL in args.
func (a *app) withPage(cmd *cobra.Command, args []string, do func(context.Context, process, string) error) error {
	switch {
	case len(args) == 0:
		return newUsageError(cmd, "no URL is given; write %s URL (--data DIR | -c FILE)", cmd.CommandPath())
	case len(args) > 1:
		return newUsageError(cmd, "%s takes one URL, but got %q as well", cmd.Name(), args[1])
	}
	if err := checkPageURL(cmd, args[0]); err != nil {
		return err
	}
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error { return do(ctx, m, args[0]) })
}

// checkPageURL returns an error if url is not the URL of a page.
func checkPageURL(cmd *cobra.Command, url string) error {
	if _, err := pageurl.Canonical(url); err != nil {
		return newUsageError(cmd, "%w", err)
	}
	return nil
}

// loadSubscriptions returns the subscriptions of all clients to the page of url that m knows. Where
// several processes share the pages, only the owner of the page knows them.
func loadSubscriptions(ctx context.Context, m process, url string) ([]inspect.Subscription, error) {
	l, err := m.Pages(ctx, inspect.ListFilter{URL: url})
	if err != nil && !errors.Is(err, inspect.ErrElsewhere) {
		return nil, err
	}
	var all []inspect.Subscription
	for _, p := range l.Pages {
		all = append(all, p.Subscriptions...)
	}
	return all, nil
}

// namingClients returns err, or, if it says that client does not watch the page, an error that names who of subs does.
func namingClients(err error, subs []inspect.Subscription, url, client string) error {
	watches := func(s inspect.Subscription) bool { return s.Client == client }
	if !isNotFound(err) || len(subs) == 0 || slices.ContainsFunc(subs, watches) {
		return err
	}
	return fmt.Errorf("client %q does not watch %s; name one that does with --client: %s", client, url, clientNames(subs))
}

// clientNames lists the clients of subs.
func clientNames(subs []inspect.Subscription) string {
	var names []string
	for _, s := range subs {
		names = append(names, fmt.Sprintf("%q", s.Client))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// isNotFound reports whether err says that there is no such page, subscription or document.
func isNotFound(err error) bool {
	refused, ok := errors.AsType[*flow.Refusal](err)
	return ok && refused.Code == flow.CodeNotFound
}
