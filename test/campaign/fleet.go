//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How the processes of a fleet work.
const (
	laneCount      = 8
	sessionTimeout = 3 * time.Second
	// checkInterval is the interval of checks: each is two or three records.
	checkInterval = 100 * time.Millisecond
	// fleetCancelGrace is how long after a cancel an attempt may begin: lanes may be on their way
	// from one process to another meanwhile, or a broker be short of breath.
	fleetCancelGrace = 30 * time.Second
	// waitLimit is how long anything may take when all processes live. It is less than the time
	// after which a page whose request was lost is asked for again.
	waitLimit = 2 * time.Minute
)

// fleet is several processes that share pages and receivers over Kafka. What is done to
// pages, receivers and subscriptions is done as to one directory. The processes share a clock
// that jumps: those of machines agree but for seconds, and what one of them plans another one
// does. There are no backups and no verbs without a process: the state is in Kafka.
type fleet struct {
	*directory
	broker  *broker
	topics  *topics
	state   *topicState
	members []*member
	// laneMoves bounds how many times lanes went from one process to another.
	laneMoves int
	// isFinalRun says that the processes run for the last time, hasTimedOut that something took too long
	// since: what follows is not waited for as long.
	isFinalRun, hasTimedOut bool
	// slowestCatchUp is the longest time that it took to catch up after the broker came back.
	slowestCatchUp time.Duration
}

func newFleet(ctx context.Context, o options, n int, dir string, did *counters) (*fleet, error) {
	d, err := newDirectory(o, n, dir, did)
	if err != nil {
		return nil, err
	}
	f := &fleet{directory: d, state: newTopicState()}
	// A process remembers until when a host is to be left alone. It lives long here, and the
	// clock of the campaign jumps for that, too, which a machine's does not.
	d.pages.asksForPauses = false
	if f.broker, err = newBroker(ctx, o.brokers, filepath.Join(dir, "broker")); err != nil {
		return f, err
	}
	prefix := "campaign-" + strings.ToLower(rand.Text()) + "."
	f.transport = fmt.Sprintf("transport: {kafka: {brokers: [%q], topic_prefix: %s, partitions: %d, replication: 1, pages: true, session_timeout: %s}}\n",
		strings.Join(strings.Split(f.broker.addrs, ","), `", "`), prefix, laneCount, sessionTimeout)
	f.process.interval = checkInterval
	for i := range o.processes {
		m, err := newMember(f, filepath.Join(dir, fmt.Sprint("process", i)))
		if err != nil {
			return f, err
		}
		f.members = append(f.members, m)
	}
	// The guest comes and goes by commands in the topic documents. A file that some processes
	// have read already and others not would let it come and go each time a page moves.
	delete(f.subscriptions, guestClient)
	for n := range f.wanted {
		f.wanted[n][guestClient] = false
	}
	if err := f.configure(); err != nil {
		return f, err
	}
	if err := f.startAll(ctx); err != nil {
		return f, err
	}
	f.topics, err = newTopics(f.broker.addrs, prefix)
	if err != nil {
		return f, err
	}
	return f, errors.Join(f.topics.consume("changes", f.state.addChange), f.topics.consume("subscriptions", f.state.addSubscription))
}

// startAll starts every process that is not there, lets those go on that are frozen, and
// waits until all of them work.
func (f *fleet) startAll(ctx context.Context) error {
	for _, m := range f.members {
		if err := f.bringBack(m); err != nil {
			return err
		}
	}
	return f.waitFor(ctx, func() bool {
		for i, m := range f.members {
			if err := m.ready(ctx); err != nil {
				f.waitingFor = fmt.Sprintf("process %d: to be ready: %v", i, err)
				return false
			}
		}
		return true
	})
}

// bringBack starts m if it does not run, or lets it go on if it is frozen.
func (f *fleet) bringBack(m *member) error {
	switch {
	case m.run == nil:
		f.laneMoves++
		if err := m.start(); err != nil {
			return err
		}
		f.runs = append(f.runs, m.run)
	case m.frozen:
		f.laneMoves++
		return m.setFrozen(false)
	}
	return nil
}

// waitFor waits until done returns true, for waitLimit at most. What took longer is recorded. A process
// that ends by itself is an error.
func (f *fleet) waitFor(ctx context.Context, done func() bool) error {
	deadline := time.Now().Add(waitLimit)
	if f.hasTimedOut {
		deadline = time.Now().Add(waitLimit / 10)
	}
	for !done() {
		if time.Now().After(deadline) {
			f.timedOut = append(f.timedOut, f.waitingFor)
			f.hasTimedOut = f.isFinalRun
			return nil
		}
		if err := f.pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for so long, and sees that all that should be there is there.
func (f *fleet) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	for i, m := range f.members {
		if m.run != nil && m.run.hasEnded() {
			return fmt.Errorf("process %d: %w", i, m.run.unexpectedExit())
		}
	}
	return nil
}

// evidence returns all that is known of the fleet.
func (f *fleet) evidence() evidence {
	e := f.directory.evidence()
	e.kills, e.uptime, e.cancelGrace, e.lookGrace = f.laneMoves, f.broker.uptime, fleetCancelGrace, fleetCancelGrace
	return e
}

// watched reports of each page whether somebody watches it.
func (f *fleet) watched() []bool {
	all := make([]bool, f.options.pages)
	for n := range all {
		all[n] = !f.givenUp[n] && slices.ContainsFunc(clients, func(c string) bool { return f.subscriptions.last(c, n).isOpen() })
	}
	return all
}

// close ends all that still runs.
func (f *fleet) close() error {
	var errs []error
	for _, m := range f.members {
		if m.run != nil && !m.run.hasEnded() {
			errs = append(errs, m.kill(false))
		}
		errs = append(errs, m.log.Close())
	}
	if f.topics != nil {
		if f.broker.command == "" {
			errs = append(errs, f.topics.deleteTopics())
		}
		errs = append(errs, f.topics.close())
	}
	if f.broker != nil {
		errs = append(errs, f.broker.stop())
	}
	f.directory.close()
	return errors.Join(errs...)
}

// checkLogs counts the lines that the processes logged, and fails where one of them panicked.
func (f *fleet) checkLogs() error {
	var errs []error
	for i, m := range f.members {
		b, err := os.ReadFile(m.log.Name())
		if err != nil {
			return err
		}
		text := string(b)
		f.counters.addN("log_lines", strings.Count(text, "\n"))
		for _, sign := range []string{"panic", "goroutine "} {
			if at := strings.Index(text, sign); at >= 0 {
				errs = append(errs, fmt.Errorf("process %d logged %q", i, text[at:min(at+2000, len(text))]))
			}
		}
	}
	return errors.Join(errs...)
}

// chooseMember chooses a process that is up, for running verbs on its data directory, or nil if there
// is none.
func (f *fleet) chooseMember() *member {
	up := slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return !m.isUp() })
	if len(up) == 0 {
		return nil
	}
	m := up[f.rng.IntN(len(up))]
	f.process = m.process
	return m
}

// writeArrivals writes down what arrived when, beside what the processes logged.
func (f *fleet) writeArrivals() error {
	if !f.options.keep {
		return nil
	}
	var s strings.Builder
	for client, ms := range f.inbox.mailsOf(append([]string{ownerClient}, clients...)) {
		for _, m := range ms {
			fmt.Fprintf(&s, "%s %s %s %s %s\n", m.at.Format(clockTime), client, m.id, m.notification.Status, m.notification.URL)
		}
	}
	return os.WriteFile(filepath.Join(f.dir, "arrived"), []byte(s.String()), 0o600)
}
