package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// sinkTestLine is the JSON of a test of one sink.
type sinkTestLine struct {
	Sink      string `json:"sink"`
	Delivered bool   `json:"delivered"`
	// Answer is the status that the receiver answered with, if its protocol has one.
	Answer string `json:"answer,omitempty"`
	// Reason says why the message was not delivered, or was delivered only in part. Advice says
	// what to do.
	Reason string `json:"reason,omitempty"`
	Advice string `json:"advice,omitempty"`
	// Took is how long the test took.
	Took pipeline.Duration `json:"took"`
}

func (a *app) sinkVerb() *cobra.Command {
	return group("sink", "Tests the sinks of a configuration", "test NAME -c FILE", a.sinkTestVerb())
}

func (a *app) sinkTestVerb() *cobra.Command {
	var all bool
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "test NAME... -c FILE",
		Short: "Sends one message, marked as a test, through a sink",
		Long: "Sends one message, marked as a test, through a sink of a configuration, and prints what the receiver answered. It is sent " +
			"once, whatever the answer is. If it is delivered, a running process attempts what waits for the sink at once. Without a name it lists the sinks.",
		Example: `  vokter-stream sink test ops -c vokter.yaml
  vokter-stream sink test --all -c vokter.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.testSinks(cmd, args, all) },
	}, outputFlags|configFlags)
	fs := cmd.Flags()
	fs.BoolVar(&all, "all", false, "test every sink of the configuration")
	fs.Func("allow", "a network `CIDR` that sinks may reach besides public addresses (repeatable)", a.flags.addPrefixes)
	return cmd
}

// expandRoutes returns names with the sinks that routes among them lead to in place of the routes,
// each once. A route delivers nothing itself.
func expandRoutes(names []string, sinks map[string]pipeline.Sink) []string {
	var all []string
	seen := make(map[string]bool)
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		if route, ok := registry.RouteOf(sinks[name]); ok {
			names = append(route.Targets(), names...)
			continue
		}
		all = append(all, name)
	}
	return all
}

func (a *app) testSinks(cmd *cobra.Command, names []string, all bool) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	sinks := c.Router.Sinks
	defer closeSinks(sinks)
	known := slices.Sorted(maps.Keys(sinks))
	switch {
	case len(known) == 0:
		return newUsageError(cmd, "%s has no sinks; add one", a.flags.config)
	case all && len(names) > 0:
		return newUsageError(cmd, "--all tests every sink; name none, or leave --all out")
	case all:
		names = known
	case len(names) == 0:
		return newUsageError(cmd, "no sink is named; %s has %s: name some, or write --all", a.flags.config, strings.Join(known, ", "))
	}
	for _, name := range names {
		if sinks[name] == nil {
			return newUsageError(cmd, "no sink is named %q; %s", name, nearest.Hint(name, known))
		}
	}
	reportBrokenPipes(a.stdout)
	out := a.newResults()
	var failed []error
	for _, name := range expandRoutes(names, sinks) {
		line := testSink(cmd.Context(), name, sinks[name])
		if line.Delivered {
			line.Advice = a.suggestCommands(cmd.Context(), c.Router.Dir, name)
		}
		out.printJSON("sink_test", line)
		switch {
		case !line.Delivered:
			failed = append(failed, fmt.Errorf("sink %s: %s; %s", name, line.Reason, line.Advice))
		default:
			out.printLine("%s", deliveredText(line))
			if line.Advice != "" {
				out.printLine("  %s", line.Advice)
			}
		}
		if err := out.flush(); err != nil { // print each result at once
			return err
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// suggestCommands suggests a command for the notifications in the data directory dir that were not
// delivered while the sink called name failed, or makes a running process attempt them. It returns an empty string if
// there are none.
func (a *app) suggestCommands(ctx context.Context, dir, name string) string {
	if dir == "" || checkDirectory(dir) != nil {
		return ""
	}
	var advice []string
	add := func(format string, args ...any) {
		advice = append(advice, fmt.Sprintf(format, args...)+fmt.Sprintf(" --sink %s -c %s", name, a.flags.config))
	}
	_ = a.withProcess(ctx, dir, func(ctx context.Context, m process) error { // an error does not matter: the test has its result
		receivers, err := m.Receivers(ctx, inspect.ListFilter{})
		if err != nil {
			return err
		}
		for _, rc := range receivers {
			if rc.Sink != name {
				continue
			}
			switch {
			case rc.State != inspect.StateFailing || rc.Pending == 0:
			case m.router == nil:
				if _, err := m.Retry(ctx, flow.RetryFilter{Sink: name}); err != nil {
					return err
				}
				advice = append(advice, notificationsAre(rc.Pending)+" waiting; the running process attempts to deliver now")
			default:
				add("%s waiting; to try now: vokter-stream retry", notificationsAre(rc.Pending))
			}
			if rc.State == inspect.StateExpired {
				add("it is expired; to watch its pages again: vokter-stream resume")
			}
			if rc.Dead > 0 {
				add("%s given up; to send again: vokter-stream replay", notificationsAre(rc.Dead))
			}
		}
		return nil
	})
	return strings.Join(advice, "\n  ")
}

// deliveredText returns the line about a test that succeeded.
func deliveredText(l sinkTestLine) string {
	s := fmt.Sprintf("%s: delivered", l.Sink)
	if l.Answer != "" {
		s += ", answered " + l.Answer
	}
	s += fmt.Sprintf(" (%s)", time.Duration(l.Took).Round(time.Millisecond))
	if l.Reason != "" {
		s += ", but: " + l.Reason
	}
	return s
}

func closeSinks(sinks map[string]pipeline.Sink) {
	for _, s := range sinks {
		if c, ok := registry.CloserOf(s); ok {
			_ = c.Close() // there is nothing left to send
		}
	}
}

// testSink sends the test message through s, once.
func testSink(ctx context.Context, name string, s pipeline.Sink) sinkTestLine {
	at := &testAttempt{Attempt: pipeline.AttemptFrom(context.Background())}
	attempt, cancel := context.WithTimeout(pipeline.WithAttempt(ctx, at), timeoutOf(s))
	defer cancel()
	attempt = outbound.WithObserver(attempt, at.setAnswer)
	began := time.Now()
	var err error
	if c, ok := registry.CheckerOf(s); ok {
		err = c.Check(attempt)
	}
	if err == nil {
		err = s.Deliver(attempt, vokter.TestNotification(began))
	}
	line := sinkTestLine{Sink: name, Delivered: err == nil, Took: pipeline.Duration(time.Since(began))}
	line.Answer, line.Reason = at.result()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		line.Reason, line.Advice = "interrupted", "it may have arrived all the same"
	default:
		line.Reason, line.Advice = reasonAndAdvice(err, line.Answer)
	}
	return line
}

// timeoutOf returns how long an attempt of s may take.
func timeoutOf(s pipeline.Sink) time.Duration {
	return cmp.Or(registry.TimeoutOf(s), pipeline.DefaultTimeout)
}

// reasonAndAdvice returns the reason of err, with which a test failed, and advice. answer is the last
// status of the receiver.
func reasonAndAdvice(err error, answer string) (reason, what string) {
	reason = err.Error()
	if a, ok := errors.AsType[*outbound.Advised](err); ok {
		if reason, ok = strings.CutSuffix(reason, "; "+a.Advice); ok {
			return reason, a.Advice
		}
	}
	return reason, adviceFor(err, answer)
}

// adviceFor says what to do about err. answer is the last status of the receiver.
func adviceFor(err error, answer string) string {
	class, _ := failure.ClassOf(err)
	code, _, _ := strings.Cut(answer, " ")
	refused, isRefused := errors.AsType[*outbound.AddressError](err)
	switch {
	case isRefused:
		return fmt.Sprintf("or for this command with --allow %s", refused.Network())
	case isCertificate(err):
		return "the certificate of the receiver has to be put right"
	case code == "401" || code == "403" || code == "530" || code == "534" || code == "535": // the last three are codes of mail servers
		return "check its token, secret or password, and write the right one into the file; delivery tries again"
	case strings.HasPrefix(err.Error(), outbound.TokenRefused): // Slack answers with status 200
		return "write the right token into the file; delivery tries again"
	case code == "404" || code == "405" || code == "410" || strings.HasPrefix(code, "3"):
		return "check its address"
	case class == failure.ClassGone:
		return "delivery would give this receiver up"
	case class == failure.ClassPermanent:
		return "delivery would not try it again"
	case class == failure.ClassRefused:
		return "it does not take such a body: check the kind of the sink and its options"
	case failure.TellsAtOnce(err): // the error says it all
		return "put that right in the file, or at the receiver; delivery tries again"
	case failure.IsAmbiguous(err):
		return "look there whether it arrived all the same"
	case isNetwork(err):
		return "check its address, and whether it is up"
	}
	return "delivery would try it again later"
}

// isCertificate reports whether err is about an invalid certificate.
func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// isNetwork reports whether err is a network error: the receiver was not reached.
func isNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// testAttempt is a pipeline.Attempt that records what a sink reports besides its error.
type testAttempt struct {
	pipeline.Attempt

	mu               sync.Mutex
	answer, degraded string
}

func (a *testAttempt) setAnswer(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = status
}

// Degraded implements pipeline.Attempt.
func (a *testAttempt) Degraded(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.degraded = reason
}

func (a *testAttempt) result() (answer, degraded string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer, a.degraded
}
