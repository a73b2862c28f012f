package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// replayNotice is what people should know before and after a replay.
const replayNotice = "A replay ignores which IDs were delivered before: a receiver may get an ID again."

// replayed is the result of a replay.
type replayed struct {
	client.Replayed
	// Pending and Dead count the notifications that were not delivered. They are missing
	// where a running process delivers, because the verb does not wait for it.
	Pending int `json:"pending,omitempty"`
	Dead    int `json:"dead,omitempty"`
}

func (a *app) replayVerb() *cobra.Command {
	var (
		f   flow.DeadFilter
		dry bool
	)
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "replay -c FILE",
		Short: "Delivers dead letters again",
		Long: "Queues dead letters for delivery again, in their order. A receiver that expired is active again after its first " +
			"successful delivery. Where no process runs, this one delivers them and ends.\n\n" + replayNotice,
		Example: `  vokter-stream replay -c vokter.yaml --sink ops --dry-run
  vokter-stream replay -c vokter.yaml --sink ops --since 24h`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.replayLetters(cmd, f, dry) },
	}, outputFlags|pipelineFlags|configFlags)
	fs := cmd.Flags()
	fs.StringVar(&f.Sink, "sink", "", "only dead letters for the sink `NAME`")
	fs.StringVar(&f.Client, "client", "", "only dead letters of the client `NAME`")
	fs.StringVar(&f.URL, "url", "", "only dead letters about the page of this `URL`")
	fs.Func("since", "only dead letters since this `TIME`: a duration such as 24h, a date, or 2026-01-31T15:04:05Z",
		setTo(&f.Since, func(text string) (time.Time, error) { return parseSince(text, time.Now()) }))
	fs.BoolVar(&dry, "dry-run", false, "only list the dead letters, including messages that could not be handled, which are not sent again")
	return cmd
}

func (a *app) replayLetters(cmd *cobra.Command, f flow.DeadFilter, dry bool) error {
	if err := checkPageURL(cmd, f.URL); err != nil {
		return err
	}
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	dir := c.Router.Dir
	if dir == "" {
		return newUsageError(cmd, "no data directory is given; write data: DIR into %s, or --data DIR", a.flags.config)
	}
	if err := checkDirectory(dir); err != nil {
		return err
	}
	closeSinks(c.Router.Sinks)
	if err := checkSinkInConfig(cmd, f.Sink, c.Router); err != nil {
		return err
	}
	if dry {
		return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error { return a.listLetters(ctx, m, f) })
	}
	reportBrokenPipes(a.stdout)
	return a.deliverAgain(cmd, dir, f)
}

// listLetters prints the dead letters that f selects, including those that cannot be replayed.
func (a *app) listLetters(ctx context.Context, m process, f flow.DeadFilter) error {
	f.Messages = true
	letters, err := m.DeadLetters(ctx, f)
	if err != nil {
		return err
	}
	if err := a.printLanes(ctx, m); err != nil {
		return err
	}
	out := m.out
	var again, stuck [][]string
	for _, d := range letters {
		if d.Addressed == nil {
			out.printJSON("unhandled", d)
			stuck = append(stuck, []string{formatTime(d.Time, out.now), d.URL(), "of " + d.Topic, d.Reason})
			continue
		}
		out.printJSON("dead_letter", d)
		n := d.Addressed.Notification
		to := "by " + d.Addressed.Receiver.Sink
		again = append(again, []string{formatTime(d.Time, out.now), n.URL, "for " + n.Client, to, fmt.Sprintf("%s: %s", countNoun(d.Attempts, "attempt"), d.Reason), n.ID})
	}
	switch {
	case len(again) > 0:
		out.printLine("%s would be sent again:", countNoun(len(again), "notification"))
		out.printTable("  ", again)
		out.printLine("%s", replayNotice)
	case len(stuck) > 0:
	case hasFilter(f):
		return errNoLetter
	default:
		out.printNothing("there are no dead letters")
	}
	if len(stuck) > 0 {
		out.printLine("%s could not be handled, and cannot be replayed; what was pushed has to be pushed again:", countNoun(len(stuck), "message"))
		out.printTable("  ", stuck)
	}
	return nil
}

var errNoLetter = matchesNothing("there is no such dead letter; replay --dry-run without filters lists all")

// hasFilter reports whether f selects only some dead letters.
func hasFilter(f flow.DeadFilter) bool {
	f.Messages = false
	return f != flow.DeadFilter{}
}

// deliverAgain delivers the dead letters that f selects.
func (a *app) deliverAgain(cmd *cobra.Command, dir string, f flow.DeadFilter) error {
	var done replayed
	asked := make(replayedIDs)
	return a.withDelivery(cmd, dir, "", func(ctx context.Context, m process) error {
		if m.router != nil {
			letters, err := m.DeadLetters(ctx, f)
			if err != nil {
				return err
			}
			asked.add(letters)
			for to := range asked { // a sink gets its pending notifications before the replayed ones
				if _, err := m.Retry(ctx, flow.RetryFilter{Sink: to.Sink}); err != nil {
					return err
				}
			}
		}
		var err error
		if done.Replayed.Replayed, err = m.Replay(ctx, f); err != nil {
			return err
		}
		return a.printLanes(ctx, m)
	}, func(ctx context.Context, m process) error {
		if done.Replayed.Replayed == 0 && hasFilter(f) {
			return errNoLetter
		}
		var waiting []string
		if m.router != nil {
			letters, err := m.DeadLetters(ctx, f)
			if err != nil {
				return err
			}
			receivers, err := m.Receivers(ctx, inspect.ListFilter{})
			if err != nil {
				return err
			}
			done.Dead = asked.remove(letters)
			done.Pending, waiting = asked.pending(receivers)
		}
		m.out.printJSON("replay", done)
		if done.Replayed.Replayed == 0 {
			m.out.printLine("there are no dead letters")
		} else {
			m.out.printLine("%s put back into delivery", countNoun(done.Replayed.Replayed, "notification"))
			m.out.printLine("%s", replayNotice)
		}
		switch {
		case done.Dead > 0:
			return fmt.Errorf("%s given up again: see list, and replay --dry-run", countNoun(done.Dead, "notification"))
		case done.Pending > 0:
			return fmt.Errorf("%s not delivered yet; kept, and tried again when the data directory is used next\n%s",
				countNoun(done.Pending, "notification"), strings.Join(waiting, "\n"))
		}
		return nil
	})
}

// replayedIDs holds the IDs of the replayed notifications, by receiver.
type replayedIDs map[pipeline.Receiver]map[string]bool

func (a replayedIDs) add(letters []flow.DeadLetter) {
	for _, d := range letters {
		to := d.Addressed.Receiver
		if a[to] == nil {
			a[to] = make(map[string]bool)
		}
		a[to][d.Addressed.Notification.ID] = true
	}
}

// remove removes those that are dead letters again, and returns how many.
func (a replayedIDs) remove(letters []flow.DeadLetter) int {
	n := 0
	for _, d := range letters {
		if ids := a[d.Addressed.Receiver]; ids[d.Addressed.Notification.ID] {
			delete(ids, d.Addressed.Notification.ID)
			n++
		}
	}
	return n
}

// pending returns how many are still pending, and why. They come after the notifications that
// were pending before.
func (a replayedIDs) pending(receivers []inspect.Receiver) (n int, why []string) {
	for _, rc := range receivers {
		if wait := min(rc.Pending, len(a[pipeline.Receiver{Sink: rc.Sink}])); wait > 0 {
			n += wait
			why = append(why, fmt.Sprintf("sink %s: %s", rc.Sink, rc.Reason))
		}
	}
	return n, why
}

// maxShownBody is how much of the body of a message skip shows, in bytes.
const maxShownBody = 400

func (a *app) skipVerb() *cobra.Command {
	var yes bool
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "skip --data DIR",
		Short: "Shows the message that stopped the pipeline, and skips it",
		Long: "Shows the message that stopped the pipeline, and asks whether to skip it. The next start then moves it to the dead " +
			"letters, where replay --dry-run lists it, and continues with the next message.\n\n" +
			"A skipped message has no effect: the notification or the subscription that it would have caused is missing. Skip it " +
			"only if nothing else helps; first try the version of vokter-stream that wrote the message. With --format json the " +
			"message is only shown, unless --yes is given.",
		Example: `  vokter-stream skip --data ./data
  vokter-stream skip -c vokter.yaml --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.skipMessage(cmd, yes) },
	}, outputFlags|directoryFlags|configFlags)
	cmd.Flags().BoolVar(&yes, "yes", false, "skip it without asking")
	return cmd
}

func (a *app) skipMessage(cmd *cobra.Command, yes bool) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	s, err := vokter.StoppedBy(dir, "")
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("there is nothing to skip: no message stopped a process with the data directory %s since it was last handled", dir)
	}
	out := a.newResults()
	if !s.Skip {
		showStopped(out, s)
		switch {
		case yes:
		case out.json: // there is nobody to ask
			out.printJSON("stopped", s)
			return out.flush()
		default:
			if err := a.confirmSkip(out); err != nil {
				return err
			}
		}
		if err := vokter.SkipStopped(dir, "", s); err != nil {
			return err
		}
		s.Skip = true
	}
	out.printDone("skipped", s, "skipped: the next start of the pipeline moves it to the dead letters and continues")
	return out.flush()
}

// showStopped prints s as text.
func showStopped(out *results, s *vokter.Stopped) {
	page := cmp.Or(s.URL(), "none is named")
	out.printLine("%s stopped over this message %s:", s.Group, formatTime(s.Time, out.now))
	rows := [][]string{
		{"reason", s.Reason},
		{"page", page},
		{"topic", s.Topic},
		{"type", s.Type()},
		{"position", cmp.Or(s.Position, "none: a timer of the pipeline made it")},
	}
	if len(s.Body) > 0 {
		body := flow.Clipped(string(s.Body), maxShownBody)
		rows = append(rows, []string{"body", fmt.Sprintf("%s (%s)", body, countNoun(len(s.Body), "byte"))})
	}
	out.printTable("  ", rows)
}

// confirmSkip asks the user whether to skip the message. It returns an error unless the answer is
// yes.
func (a *app) confirmSkip(out *results) error {
	if err := out.flush(); err != nil {
		return err
	}
	fmt.Fprint(a.stderr, "Skip it? It will then have no effect. [y/N] ")
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	case "":
		fmt.Fprintln(a.stderr)
	}
	return errors.New("nothing was skipped; answer y, or write --yes")
}

func (a *app) retryVerb() *cobra.Command {
	var f flow.RetryFilter
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "retry [URL] [--sink NAME] (--data DIR | -c FILE)",
		Short: "Attempts pending notifications now, not when they are due",
		Long: "Attempts to deliver pending notifications now, not when their next attempt is due: those of all sinks, of one, or " +
			"with a URL those of all sinks with a pending notification about that page. Each sink gets them in order. A digest " +
			"still waits for its time.\n\n" +
			"A running process makes the attempts itself; list --sinks shows the results. Where no process runs, this one " +
			"attempts each once, with the sinks of -c FILE, and ends.",
		Example: `  vokter-stream retry --sink ops -c vokter.yaml
  vokter-stream retry https://example.com/terms --data ./data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				url, err := onlyArg(cmd, args, "URL")
				if err == nil {
					err = checkPageURL(cmd, url)
				}
				if err != nil {
					return err
				}
				f.URL = url
			}
			return a.retryPending(cmd, f)
		},
	}, outputFlags|pipelineFlags|configFlags)
	cmd.Flags().StringVar(&f.Sink, "sink", "", "only the sink `NAME`")
	return cmd
}

// retried is the result of a retry that this process made.
type retried struct {
	flow.Retried
	// Pending counts the notifications that are still pending, and Reason says why.
	Pending int    `json:"pending"`
	Reason  string `json:"reason,omitempty"`
}

func (a *app) retryPending(cmd *cobra.Command, f flow.RetryFilter) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	var tried []flow.Retried
	return a.withDelivery(cmd, dir, f.Sink, func(ctx context.Context, m process) (err error) {
		tried, err = m.Retry(ctx, f)
		return err
	}, func(ctx context.Context, m process) error {
		switch {
		case len(tried) > 0:
		case f != flow.RetryFilter{}:
			return matchesNothing("no such notification is pending; list --sinks shows the state of each sink")
		default:
			m.out.printNothing("no notification is pending")
			return nil
		}
		left, err := m.Receivers(ctx, inspect.ListFilter{}) // with notifications that are still pending
		if err != nil {
			return err
		}
		var failed []error
		for _, t := range tried {
			if t.Elsewhere {
				m.out.printDone("retry", t, "%s: another process owns it and was asked to attempt its notifications", t.Sink)
				continue
			}
			if m.router == nil {
				m.out.printDone("retry", t, "%s: %s attempted now", t.Sink, notificationsAre(t.Waiting))
				continue
			}
			done := retried{Retried: t}
			if i := slices.IndexFunc(left, func(rc inspect.Receiver) bool { return rc.Sink == t.Sink }); i >= 0 {
				done.Pending, done.Reason = left[i].Pending, left[i].Reason
			}
			m.out.printJSON("retried", done)
			switch {
			case done.Pending > 0:
				failed = append(failed, fmt.Errorf("sink %s: %s still pending: %s", t.Sink, notificationsAre(done.Pending), done.Reason))
			case done.Reason != "":
				failed = append(failed, fmt.Errorf("sink %s: nothing is pending any more, but the last attempt failed: %s; replay --dry-run lists what was given up", t.Sink, done.Reason))
			default:
				m.out.printLine("%s: no notification is pending any more", t.Sink)
			}
		}
		return errors.Join(failed...)
	})
}

// notificationsAre returns "1 notification is" or "N notifications are".
func notificationsAre(n int) string {
	if n == 1 {
		return "1 notification is"
	}
	return fmt.Sprintf("%d notifications are", n)
}
