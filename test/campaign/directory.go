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
const guest = "guest"

var clients = []string{"ann", "bob", picky, guest}

// directory is one data directory with its process, pages and receivers.
type directory struct {
	o       options
	dir     string
	dice    *rand.Rand
	did     *tally
	pages   *pages
	inbox   *inbox
	process process
	// transport is the block of the configuration that says which one is used; empty: local.
	transport string
	clock     clock
	wanted    wanted
	ledger    ledger
	lives     []*life
	kills     int
	given     map[int]bool // pages that are given up, or about to be
	resuming  map[int]bool // those of them that are resumed, or not, nobody heard
	awaited   string       // what the last life is waited for to do
	late      []string     // what it did not do in time
}

func newDirectory(o options, n int, dir string, did *tally) (*directory, error) {
	seed := o.seed + uint64(n)<<32
	d := &directory{o: o, dir: dir, dice: rand.New(rand.NewPCG(seed, 0)), did: did, ledger: ledger{}, given: map[int]bool{}, resuming: map[int]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.pages, err = newPages(o.pages, seed, did); err != nil {
		return nil, err
	}
	if d.inbox, err = newInbox(seed, did); err != nil {
		return nil, err
	}
	d.inbox.please(slices.Contains(o.without, "replays"))
	d.clock.file = filepath.Join(dir, "clock")
	d.process = process{
		binary: o.binary, config: filepath.Join(dir, "campaign.yaml"), data: filepath.Join(dir, "data"),
		clock: d.clock.file, verbose: o.verbose, every: 20 * time.Millisecond,
	}
	for n := range o.pages {
		w := map[string]bool{}
		for _, c := range clients {
			if w[c] = (c == guest) == lonely(n); w[c] {
				d.ledger.begin(c, n, 0).stood = 1
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

// lonely pages have no client but the guest, mortal ones are given up now and then.
func lonely(n int) bool { return n%5 == 1 }
func mortal(n int) bool { return n%5 == 0 }

// configure writes the configuration.
func (d *directory) configure() error {
	interval := time.Duration(1+d.dice.IntN(60)) * time.Minute
	return writeConfig(d.process.config, d.pages, d.inbox, d.wanted, clients, interval, d.transport)
}

// live runs the process for a while with random actions, and kills it. Between two runs an
// action may follow on the directory.
func (d *directory) live(ctx context.Context) error {
	lifetime := time.Duration(d.dice.Int64N(int64(700*time.Millisecond))) + 50*time.Millisecond
	switch d.dice.IntN(6) {
	case 0: // it has hardly begun
		lifetime /= 10
	case 1:
		lifetime *= 3
	}
	l, err := d.begin()
	if err != nil {
		return err
	}
	killed := make(chan error, 1)
	timer := time.AfterFunc(lifetime, func() { killed <- l.kill() })
	for !l.over() {
		select {
		case <-ctx.Done():
		case <-l.ended:
			continue
		case <-time.After(time.Duration(20+d.dice.IntN(150)) * time.Millisecond):
			err = d.act(l)
		}
		if (err != nil || ctx.Err() != nil) && timer.Stop() {
			killed <- l.kill()
			break
		}
	}
	if l.over() && timer.Stop() {
		killed <- l.own()
	}
	if kerr := <-killed; kerr != nil || err != nil || ctx.Err() != nil {
		return firstOf(err, kerr, ctx.Err())
	}
	d.kills++
	d.did.add("kills")
	if d.dice.IntN(3) == 0 {
		return d.act(nil)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// begin starts the process.
func (d *directory) begin() (*life, error) {
	l, err := d.process.start()
	if err == nil {
		d.lives = append(d.lives, l)
	}
	return l, err
}

// act does one thing to the running process, or to the directory where l is nil.
func (d *directory) act(l *life) error {
	type action struct {
		kind string
		do   func(*life) error
	}
	actions := []action{
		{"jumps", d.jump}, {"reloads", d.visit}, {"reloads", d.visit}, {"reloads", d.confirm}, {"reloads", d.confirm},
		{"reloads", d.reload}, {"expiry", d.doom}, {"expiry", d.doom}, {"expiry", d.resume}, {"backups", d.backup}, {"replays", d.replay},
	}
	a := actions[d.dice.IntN(len(actions))]
	// A process that starts would find the directory in use by a verb.
	starts := l != nil && !d.listening(l) && a.kind != "jumps"
	if starts || slices.Contains(d.o.without, a.kind) {
		return nil
	}
	return a.do(l)
}

// jump sets the clock.
func (d *directory) jump(*life) error {
	done, err := d.clock.jump(jumps[d.dice.IntN(len(jumps))])
	if done {
		d.did.add("jumps")
	}
	return err
}

// doom makes a page fail until it is given up, if any can be now.
func (d *directory) doom(*life) error {
	for _, i := range d.dice.Perm((d.o.pages + 4) / 5) {
		n := i * 5 // a mortal one
		if !d.given[n] && d.pages.doom(n) {
			d.given[n] = true
			d.did.add("dooms")
			break
		}
	}
	return nil
}

// verb runs a verb on the directory, and kills it now and then.
func (d *directory) verb(l *life, args ...string) (answer, error) {
	var kill time.Duration
	if d.dice.IntN(4) == 0 {
		kill = time.Duration(1+d.dice.IntN(80)) * time.Millisecond
	}
	return d.surely(l, kill, args...)
}

// surely runs a verb. On a directory that no process uses it must not fail, but for what
// it says itself.
func (d *directory) surely(l *life, kill time.Duration, args ...string) (answer, error) {
	a, err := d.process.verb(kill, append(args, "--data", d.process.data)...)
	if err != nil {
		return a, err
	}
	switch {
	case a.killed:
		d.did.add("killed_verbs")
	case a.code == 0 || a.unborn():
	case a.empty():
		a.code = 0
	case a.code == 2 || l == nil && !a.absent():
		return a, fmt.Errorf("%v exits with %d: %s", args, a.code, a.log)
	}
	return a, nil
}

// alive returns how long the process lived between two times.
func (d *directory) alive(from, to time.Time) time.Duration {
	var sum time.Duration
	for _, l := range d.lives {
		begin, end := l.from, l.till
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
		pages: d.pages.record(), mails: d.inbox.record(clients), health: d.inbox.record([]string{owner})[owner], ledger: d.ledger,
		late: d.inbox.late(), alive: d.alive, afterwards: afterwards, forgotten: d.inbox.denials(), kills: d.kills, awaited: d.late,
	}
}
