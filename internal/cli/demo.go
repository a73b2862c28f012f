package cli

import (
	"github.com/vokter/vokter/pipeline"

	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/sinks/stdout"
)

func (a *app) demo() *cobra.Command {
	var changes int
	cmd := a.flags.with(&cobra.Command{
		Use:   "demo",
		Short: "Shows what this does, on a small page that changes",
		Long:  "Serves a small page on loopback that changes, watches it with the real pipeline, and shows the page before and after beside what is reported.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("changes") && changes < 1 {
				return usage(cmd, "--changes: %d is not at least 1; leave it out for the whole story", changes)
			}
			return a.runDemo(cmd.Context(), changes)
		},
	}, outputFlags)
	cmd.Flags().IntVar(&changes, "changes", 0, "end after `N` changes were notified; more than the story has repeat it (default: the story once)")
	return cmd
}

func (a *app) runDemo(ctx context.Context, changes int) error {
	reportBrokenPipes(a.stdout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve the demo's page: %w", err)
	}
	site := &http.Server{Handler: new(story), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = site.Serve(l) }() // ends with Close
	defer site.Close()
	url := "http://" + l.Addr().String() + "/"

	if changes == 0 {
		changes = len(scenes) - 1
	}
	say := func(format string, args ...any) {
		if a.flags.format == stdout.FormatJSON {
			return
		}
		if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
			cancel(&outputError{err})
		}
	}
	printed, err := stdout.New(stdout.Config{Writer: a.stdout, Format: cmp.Or(a.flags.format, stdout.FormatText)})
	if err != nil {
		return err
	}
	out := &counted{next: mandatory{printed, cancel}, limit: changes, reached: func() { cancel(nil) }, before: func(n pipeline.Notification) {
		say("%s", beforeAndAfter(n.Version))
	}}
	r, err := vokter.New(vokter.Config{
		Origin: "demo",
		Sinks:  map[string]pipeline.Sink{printer: out},
		Subscriptions: []pipeline.Subscription{{
			URL: url, Client: "you", Keywords: demoKeywords, IgnoreCase: true, Sinks: []string{printer},
		}},
		Every:  &a.pace,
		Fetch:  vokter.FetchConfig{Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Logger: a.flags.logger(a.stderr, slog.LevelWarn),
	})
	if err != nil {
		return err
	}
	// Lines of less than 80 columns.
	say("A small shop at %s changes its page every second.\n", url)
	say("You watch it for: %s.\n", strings.Join(demoKeywords, ", "))
	say("What you see has gone the whole way: fetch, index, diff, match, delivery.\nCtrl-C ends it.\n\n")
	if err := endedBy(ctx, r.Run(ctx)); err != nil {
		return err
	}
	sum := r.Summary()
	say("%s, %s, %s.\n\nTo try next:\n"+
		"  vokter-stream watch URL KEYWORD...     watches a page of your own\n"+
		"  vokter-stream run -c FILE              watches many pages, tells many receivers\n"+
		"  vokter-stream help watch               has all options\n",
		count(sum.Checks, "check"), count(sum.Changes, "change"), count(out.delivered(), "notification"))
	return endedBy(ctx, nil)
}

// counted delivers to next until it has delivered limit notifications, if that is not
// 0; then it calls reached and drops the rest.
type counted struct {
	next    pipeline.Sink
	limit   int
	reached func()
	// before is called before each of them is delivered.
	before func(pipeline.Notification)

	mu sync.Mutex
	n  int
}

// Deliver passes n on.
func (c *counted) Deliver(ctx context.Context, n pipeline.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit > 0 && c.n == c.limit {
		return nil
	}
	c.before(n)
	if err := c.next.Deliver(ctx, n); err != nil {
		return err
	}
	if c.n++; c.n == c.limit {
		c.reached()
	}
	return nil
}

func (c *counted) delivered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

var _ pipeline.Sink = (*counted)(nil)
