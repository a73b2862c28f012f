package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
)

// resumeSeveral resumes what expired of each page, as far as it names sink and is that of client;
// empty ones mean all.
func (a *app) resumeSeveral(cmd *cobra.Command, sink, client string) error {
	dir, err := a.directory(cmd)
	if err != nil {
		return err
	}
	return a.managed(cmd.Context(), dir, func(ctx context.Context, m manage.Manager) error {
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
		if err := errors.Join(append(failed, out.end())...); err != nil {
			return err
		}
		if resumed == 0 {
			return errors.New("nothing that expired is to be resumed; list shows what is expired, and why")
		}
		return nil
	})
}

// expiredOf returns the pairs of page and client with an expired subscription to sink, or to any
// where it is empty.
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
