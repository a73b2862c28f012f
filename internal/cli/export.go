package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/migrate"
	"github.com/vokter/vokter/sources/browser"
	filesource "github.com/vokter/vokter/sources/file"
)

func (a *app) exportVerb() *cobra.Command {
	var client string
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "export (--data DIR | -c FILE)",
		Short: "Writes all subscriptions as a configuration",
		Long: "Writes all subscriptions, wherever they come from, as a configuration to standard output. They are those of the running process, or " +
			"of a data directory that none uses. The configuration passes lint. It names the sinks, but has no settings of them: each is written as " +
			"stdout. What cannot be written is listed on standard error.",
		Example: `  vokter-stream export --data /var/lib/vokter > subscriptions.yaml
  vokter-stream export -c vokter.yaml > subscriptions.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDirectory(cmd, func(ctx context.Context, m process) error {
				l, err := m.List(ctx, inspect.ListFilter{Client: client})
				if err != nil {
					return err
				}
				if err := a.printLanes(ctx, m); err != nil {
					return err
				}
				pages, err := a.browserPages(cmd)
				if err != nil {
					return err
				}
				return a.exportSubscriptions(l, pages)
			})
		},
	}, askFlags)
	cmd.Flags().Lookup("format").Usage = formatOfNotes
	cmd.Flags().StringVar(&client, "client", "", "write the subscriptions of this `CLIENT` only")
	return cmd
}

// browserPages says by canonical URL how pages are fetched, as far as the configuration that the flags name does.
func (a *app) browserPages(cmd *cobra.Command) (map[string]browser.Page, error) {
	if a.flags.config == "" {
		return nil, nil
	}
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	defer closeSinks(c.Router.Sinks)
	return c.Browser.Config().Pages, nil
}

// exportSubscriptions writes the subscriptions of l, whose pages are fetched as pages says.
func (a *app) exportSubscriptions(l inspect.Listing, pages map[string]browser.Page) error {
	var (
		w      configWriter
		lost   []migrate.Lost
		filled bool
	)
	for _, p := range l.Pages {
		for _, s := range p.Subscriptions {
			if s.FollowedFrom != "" {
				continue // the subscription that follows the links has it
			}
			name := fmt.Sprintf("%s for client %q", s.URL, s.Client)
			lose := func(field, reason string) { lost = append(lost, migrate.Lost{Entry: name, Key: field, Advice: reason}) }
			kept := slices.DeleteFunc(slices.Clone(s.Sinks), func(sink string) bool { return !config.ValidSinkName(sink) })
			if len(kept) == 0 {
				lose("sinks", "it is left out: its sink is no name of a sink in a configuration; make it again by the API that made it")
				continue
			}
			s.Sinks = kept
			if !dropInvalidFields(&s.Subscription, lose) {
				continue
			}
			for _, sink := range kept {
				if !slices.Contains(w.sinks, sink) {
					w.sinks = append(w.sinks, sink)
				}
			}
			if u, err := url.Parse(s.URL); err == nil && u.Scheme == filesource.Scheme && !slices.Contains(w.files, u.Path) {
				w.files = append(w.files, u.Path)
			}
			comment := "from " + s.Origin
			s.Paused = s.State == inspect.StatePaused
			if s.State == inspect.StateExpired {
				comment += ", " + s.State
				lose("state", "it is "+s.State+", and the configuration makes it active")
			}
			if !s.PausedUntil.IsZero() {
				lose("paused", "it is paused until "+s.PausedUntil.UTC().Format(time.RFC3339)+", and the configuration pauses it until you resume it")
			}
			of := pages[p.URL]
			filled = filled || slices.ContainsFunc(of.Steps, func(s browser.Step) bool { return s.Fill != nil })
			if err := w.addSubscription(comment, s.Subscription, of); err != nil {
				return err
			}
		}
	}
	if err := a.printLost(lost); err != nil {
		return err
	}
	if w.count == 0 {
		return matchesNothing("there are no subscriptions to write")
	}
	switch {
	case filled:
		a.printNotice("The result has the values that steps fill in, which may be secrets: let only the user of the process read the file (chmod 600).")
	case a.flags.config == "":
		a.printNotice("The data directory does not say which pages are fetched in the browser: give -c FILE to write fetch and steps, too.")
	}
	slices.Sort(w.sinks)
	text, err := w.configuration("Written by vokter-stream export.")
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}
