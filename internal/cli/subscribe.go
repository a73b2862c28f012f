package cli

import (
	"context"
	"errors"
	"fmt"
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
			"neither replaces the other. To add the same subscription again changes nothing.",
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
				m.out.printDone(kind, client.Target{URL: s.URL, Client: s.Client}, says, s.Client, s.URL)
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
	cmd.Flags().Func("for", "how long the pause lasts, a `DURATION` such as 24h (default: until resume)", setTo(&length, config.ParseDuration))
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
