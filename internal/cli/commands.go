package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

func (a *app) subscribeVerb() *cobra.Command {
	var flags subscriptionFlags
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "subscribe URL [KEYWORD...] --sink NAME -c FILE",
		Short: "Adds a subscription while the pipeline runs",
		Long: "Adds a subscription to the process that runs the data directory or, if it is stopped, for its next start. The current version of " +
			"the document is the baseline. The subscription stays in the data directory until it is cancelled, beside those of the configuration: " +
			"neither replaces the other. To add the same subscription again changes nothing. Where changes of the page are stored, it says how many " +
			"of those of the last 30 days it would have told.",
		Example: `  vokter-stream subscribe https://example.com/ Argus --sink ops -c FILE
  vokter-stream subscribe https://example.com/ --sink ops --data DIR`,
		RunE: func(cmd *cobra.Command, args []string) error {
			url, keywords, err := flags.pageAndKeywords(cmd, args)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("sink") {
				return newUsageError(cmd, "no sink is given; name the sinks that are notified with --sink NAME")
			}
			s, err := flags.toSubscription(cmd, url, keywords)
			if err != nil {
				return err
			}
			dir, err := a.startableDirectory(cmd)
			if err != nil {
				return err
			}
			return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error {
				for _, name := range s.Sinks {
					if err := a.checkSink(cmd, m, name); err != nil {
						return err
					}
				}
				created, err := m.Subscribe(ctx, s)
				if err != nil {
					return err
				}
				kind, says := "subscribed", "client %s watches %s"
				if !created {
					kind, says = "subscribed_before", "client %s has this subscription to %s already"
				}
				before, err := tryOnPast(ctx, m, s)
				m.out.printDone(kind, struct {
					client.Target
					Past *past `json:"past,omitempty"`
				}{client.Target{URL: s.URL, Client: s.Client}, before}, says, s.Client, s.URL)
				switch {
				case err != nil:
					m.out.printLine("what it would have told of earlier changes is not known: %v", err)
				case before != nil:
					m.out.printLine("it would have told %d of the %s of the last %d days", before.Told, countNoun(before.Changes, "change"), pastDays)
				}
				return nil
			})
		},
	}, askFlags)
	flags.add(cmd.Flags())
	return cmd
}

func (a *app) pauseVerb() *cobra.Command {
	var (
		of     string
		length time.Duration
	)
	cmd := a.pageVerb(&cobra.Command{
		Use:   "pause URL [--for DURATION] (--data DIR | -c FILE)",
		Short: "Pauses the subscriptions of a client on a page",
		Long: "Pauses the subscriptions of a client on a page until resume or, with --for, until that time has passed. Meanwhile changes notify nobody, " +
			"and the page is not checked for them. Notifications of earlier changes are still delivered, and the stored versions stay. " +
			"What changes during the pause is not reported later. For subscriptions that are paused already, the end of the pause is replaced.",
		Example: `  vokter-stream pause https://example.com/ --for 24h --data DIR
  vokter-stream pause https://example.com/ --client legal -c FILE`,
	}, func(ctx context.Context, m process, url string) error {
		p := client.Pause{Target: client.Target{URL: url, Client: of}}
		end := "it is resumed"
		if length > 0 {
			p.Until = time.Now().Add(length).UTC().Truncate(time.Second)
			end = formatTime(p.Until, time.Now())
		}
		subs, err := loadSubscriptions(ctx, m, url)
		if err != nil {
			return err
		}
		if err := m.Pause(ctx, url, of, p.Until); err != nil {
			return namingClients(err, subs, url, of)
		}
		m.out.printDone("paused", p, "client %s is not notified of %s until %s", of, url, end)
		return nil
	})
	cmd.Flags().StringVar(&of, "client", "default", "the `NAME` of the client")
	cmd.Flags().Func("for", "the `DURATION` of the pause, such as 24h (default: until resume)", setTo(&length, config.ParseDuration))
	return cmd
}

// checkTimeout is how long the verb check waits for its check.
const checkTimeout = 2 * time.Minute

func (a *app) checkVerb() *cobra.Command {
	return a.pageVerb(&cobra.Command{
		Use:   "check URL (--data DIR | -c FILE)",
		Short: "Checks a page now",
		Long: "Checks a page now, whatever its interval, and prints what the check found. The exit code is 1 if it failed. The waits that its host asked for are kept. " +
			"If no process runs the data directory, the page is checked when one starts.",
	}, checkNow)
}

func checkNow(ctx context.Context, m process, url string) error {
	before, err := lastCheck(ctx, m, url)
	if err != nil {
		return err
	}
	if err := m.CheckNow(ctx, url); err != nil {
		return err
	}
	if m.router != nil {
		m.out.printDone("due", client.PageRef{URL: url}, "no process runs the data directory; %s is checked when one starts", url)
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("the check of %s has not ended within %v; explain shows it later", url, checkTimeout))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := lastCheck(ctx, m, url)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case c.Check > before.Check:
			m.out.printObject(c, "kind", "checked", "url", url)
			c.Repeats = 0 // they were before
			says := fmt.Sprintf("%s: %s, %s", url, checkName(c.Check), checkResult(c, len(c.Versions) > 1, m.out.now))
			if c.Result != flow.OutcomeFailed {
				m.out.printLine("%s", says)
				return nil
			}
			if advice := inspect.AccessAdvice(c.Reason); advice != "" {
				says += "; " + advice
			}
			return errors.New(says)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// noKeyword is a filter that explains no keyword, which takes long.
var noKeyword = inspect.ExplainFilter{Keyword: "\x00"}

// lastCheck returns the last check of the page of url, or the zero Check.
func lastCheck(ctx context.Context, m process, url string) (inspect.Check, error) {
	e, err := m.Explain(ctx, url, noKeyword)
	if err != nil || len(e.Checks) == 0 {
		return inspect.Check{}, err
	}
	return e.Checks[0], nil
}

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
	return a.withDirectory(cmd, func(ctx context.Context, m process) error {
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
		i := slices.IndexFunc(l.Receivers, func(rc inspect.Receiver) bool { return rc.Sink == sink && rc.State == inspect.StateExpired })
		switch {
		case resumed > 0 || len(failed) > 0:
		case i >= 0:
			return matchesNothing(fmt.Sprintf("no subscription to sink %s is expired: each has another sink, or was resumed. The sink is expired "+
				"(%s): mend it, and its next notification makes it active again, or replay --sink %[1]s", sink, l.Receivers[i].Reason))
		case sink != "" || of != "":
			return matchesNothing("no such subscription is expired; list shows which ones are, and why")
		default:
			m.out.printNothing("no subscription is expired")
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
