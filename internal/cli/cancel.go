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
	"github.com/vokter/vokter/inspect/client"
)

func (a *app) cancelVerb() *cobra.Command {
	var of string
	cmd := a.pageVerb(&cobra.Command{
		Use:   "cancel URL (--data DIR | -c FILE)",
		Short: "Ends the subscriptions of a client on a page",
		Long:  "Ends the subscriptions of a client on a page, and drops their pending notifications.",
	}, func(ctx context.Context, m process, url string) error {
		subs, err := loadSubscriptions(ctx, m, url)
		if err != nil {
			return err
		}
		if err := m.Cancel(ctx, url, of); err != nil {
			return namingClients(err, subs, url, of)
		}
		if slices.ContainsFunc(subs, func(s inspect.Subscription) bool { return s.Client == of && s.Origin == config.Origin }) {
			fmt.Fprintln(a.stderr, "vokter-stream: a configuration has this subscription; remove it there, or the next start adds it again")
		}
		m.out.printDone("cancelled", client.Target{URL: url, Client: of}, "client %s does not watch %s any more", of, url)
		return nil
	})
	cmd.Flags().StringVar(&of, "client", "default", "the `NAME` of the client")
	return cmd
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
