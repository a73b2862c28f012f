//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Clients. Two stay all the time, one has a receiver that refuses some notifications, one
// comes and goes.
const guestClient = "guest"

var clients = []string{"ann", "bob", pickyClient, guestClient}

// directory is one data directory with its process, pages and receivers.
type directory struct {
	options  options
	dir      string
	rng      *rand.Rand
	counters *counters
	pages    *pageServer
	inbox    *inbox
	process  process
	// transport is the block of the configuration that says which one is used; empty: local.
	transport     string
	clock         clock
	wanted        wantedClients
	subscriptions subscriptionHistory
	runs          []*processRun
	kills         int
	givenUp       map[int]bool // pages that are given up, or about to be
	resuming      map[int]bool // those of them that are resumed, or not, nobody heard
	waitingFor    string       // what the last life is waited for to do
	timedOut      []string     // what it did not do in time
}

func newDirectory(o options, n int, dir string, did *counters) (*directory, error) {
	seed := o.seed + uint64(n)<<32
	d := &directory{options: o, dir: dir, rng: rand.New(rand.NewPCG(seed, 0)), counters: did, subscriptions: subscriptionHistory{}, givenUp: map[int]bool{}, resuming: map[int]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.pages, err = newPageServer(o.pages, seed, did); err != nil {
		return nil, err
	}
	if d.inbox, err = newInbox(seed, did); err != nil {
		return nil, err
	}
	d.inbox.setAcceptsAll(slices.Contains(o.without, "replays"))
	d.clock.file = filepath.Join(dir, "clock")
	d.process = process{
		binary: o.binary, config: filepath.Join(dir, "campaign.yaml"), data: filepath.Join(dir, "data"),
		clock: d.clock.file, verbose: o.verbose, interval: 20 * time.Millisecond,
	}
	for n := range o.pages {
		w := map[string]bool{}
		for _, c := range clients {
			if w[c] = (c == guestClient) == isGuestOnly(n); w[c] {
				d.subscriptions.add(c, n, 0).knownAtVersion = 1
			}
		}
		d.wanted = append(d.wanted, w)
	}
	return d, d.clock.write(d.clock.offset.String())
}

func (d *directory) close() {
	d.pages.close()
	d.inbox.close()
}

// isGuestOnly reports whether page n has no client but the guest, canExpire whether it is given up now and then.
func isGuestOnly(n int) bool { return n%5 == 1 }
func canExpire(n int) bool   { return n%5 == 0 }

// configure writes the configuration.
func (d *directory) configure() error {
	interval := time.Duration(1+d.rng.IntN(60)) * time.Minute
	return writeConfig(d.process.config, d.pages, d.inbox, d.wanted, clients, interval, d.transport)
}

// runAndKill runs the process for a while with random actions, and kills it. Between two runs an
// action may follow on the directory.
func (d *directory) runAndKill(ctx context.Context) error {
	lifetime := time.Duration(d.rng.Int64N(int64(700*time.Millisecond))) + 50*time.Millisecond
	switch d.rng.IntN(6) {
	case 0: // it has hardly begun
		lifetime /= 10
	case 1:
		lifetime *= 3
	}
	l, err := d.startRun()
	if err != nil {
		return err
	}
	killed := make(chan error, 1)
	timer := time.AfterFunc(lifetime, func() { killed <- l.kill() })
	for !l.hasEnded() {
		select {
		case <-ctx.Done():
		case <-l.ended:
			continue
		case <-time.After(time.Duration(20+d.rng.IntN(150)) * time.Millisecond):
			err = d.doRandomAction(l)
		}
		if (err != nil || ctx.Err() != nil) && timer.Stop() {
			killed <- l.kill()
			break
		}
	}
	if l.hasEnded() && timer.Stop() {
		killed <- l.unexpectedExit()
	}
	if kerr := <-killed; kerr != nil || err != nil || ctx.Err() != nil {
		return firstError(err, kerr, ctx.Err())
	}
	d.kills++
	d.counters.add("kills")
	if d.rng.IntN(3) == 0 {
		return d.doRandomAction(nil)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// startRun starts the process.
func (d *directory) startRun() (*processRun, error) {
	l, err := d.process.start()
	if err == nil {
		d.runs = append(d.runs, l)
	}
	return l, err
}

// doRandomAction does one random thing to the running process, or to the directory where l is nil.
func (d *directory) doRandomAction(l *processRun) error {
	type action struct {
		kind string
		do   func(*processRun) error
	}
	actions := []action{
		{"jumps", d.jumpClock}, {"reloads", d.toggleGuest}, {"reloads", d.toggleGuest},
		{"reloads", d.confirmSubscriptions}, {"reloads", d.confirmSubscriptions},
		{"reloads", d.signalReload}, {"expiry", d.expirePage}, {"expiry", d.expirePage}, {"expiry", d.resumeExpired}, {"backups", d.backup}, {"replays", d.replayDeadLetters},
	}
	a := actions[d.rng.IntN(len(actions))]
	// A process that starts would find the directory in use by a verb.
	starts := l != nil && !d.isListening(l) && a.kind != "jumps"
	if starts || slices.Contains(d.options.without, a.kind) {
		return nil
	}
	return a.do(l)
}

// jumpClock sets the clock by a random jump.
func (d *directory) jumpClock(*processRun) error {
	done, err := d.clock.jump(clockJumps[d.rng.IntN(len(clockJumps))])
	if done {
		d.counters.add("jumps")
	}
	return err
}

// expirePage makes a page fail until it is given up, if any can be now.
func (d *directory) expirePage(*processRun) error {
	for _, i := range d.rng.Perm((d.options.pages + 4) / 5) {
		n := i * 5 // a page that can expire
		if !d.givenUp[n] && d.pages.failForever(n) {
			d.givenUp[n] = true
			d.counters.add("dooms")
			break
		}
	}
	return nil
}

// runVerb runs a verb on the directory, and kills it now and then.
func (d *directory) runVerb(l *processRun, args ...string) (verbResult, error) {
	var kill time.Duration
	if d.rng.IntN(4) == 0 {
		kill = time.Duration(1+d.rng.IntN(80)) * time.Millisecond
	}
	return d.runVerbWithin(l, kill, args...)
}

// runVerbWithin runs a verb, and kills it after some time where kill is positive. On a directory that no process
// uses it must not fail, except in the ways that it documents.
func (d *directory) runVerbWithin(l *processRun, kill time.Duration, args ...string) (verbResult, error) {
	a, err := d.process.runVerb(kill, append(args, "--data", d.process.data)...)
	if err != nil {
		return a, err
	}
	switch {
	case a.killed:
		d.counters.add("killed_verbs")
	case a.code == 0 || a.noStore() || a.keptForLater():
	case a.noDeadLetter():
		a.code = 0
	case a.code == 2 || l == nil && !a.nothingToDo():
		return a, fmt.Errorf("%v exits with %d: %s", args, a.code, a.log)
	}
	return a, nil
}

// uptime returns how long the process ran between two times.
func (d *directory) uptime(from, to time.Time) time.Duration {
	var sum time.Duration
	for _, l := range d.runs {
		begin, end := l.startedAt, l.endedAt
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(end.Sub(begin), 0)
	}
	return sum
}

// evidence returns all that is known of the directory.
func (d *directory) evidence() evidence {
	return evidence{
		pages: d.pages.histories(), mails: d.inbox.mailsOf(clients), health: d.inbox.mailsOf([]string{ownerClient})[ownerClient],
		subscriptions: d.subscriptions,
		mayBeLate:     d.inbox.refusedIDs(), uptime: d.uptime, cancelGrace: cancelGrace, denied: d.inbox.denials(),
		kills: d.kills, timedOut: d.timedOut,
	}
}
