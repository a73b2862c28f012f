// Command day lets the real binary watch many pages for a simulated day, under a clock that runs
// faster than the machine's. Every page is checked once an hour, and some of the checks find a
// change. Some hosts hang for an hour, some for ever, and receivers fail and recover.
//
// The command judges by what its page server and receivers saw, and imports nothing of this module.
// It exits with 1 if a page was overdue, a change was not told or told wrongly, or if memory or the
// store grew more than the stored versions explain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interval is how often each page is to be checked, by the simulated clock.
const interval = time.Hour

type options struct {
	pages, hosts, receivers int
	rate                    int
	length                  time.Duration
	change                  float64
	seed                    uint64
	binary                  string
	dir                     string
	verbose                 bool
	// first is how long the first reads of all pages may take, by the machine's clock.
	first time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.pages, "pages", 20000, "watched pages")
	flag.IntVar(&o.hosts, "hosts", 100, "hosts that serve them, each on a port of its own")
	flag.IntVar(&o.receivers, "receivers", 20, "webhooks that are notified")
	flag.IntVar(&o.rate, "rate", 144, "how many times as fast as the machine's the simulated clock runs")
	flag.DurationVar(&o.length, "for", 24*time.Hour, "how much simulated time passes")
	flag.Float64Var(&o.change, "change", 0.01, "share of the checks that find a change, 0 to 1")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of all that is random here; 0 is a new one")
	flag.StringVar(&o.binary, "binary", "", "a binary of test/campaign/stream, instead of building one")
	flag.StringVar(&o.dir, "dir", "", "keep the data directory below this `DIR`, instead of a temporary one")
	flag.DurationVar(&o.first, "first", 10*time.Minute, "how long the first reads of all pages may take")
	flag.BoolVar(&o.verbose, "v", false, "show what the process logs")
	flag.Parse()
	if err := o.check(); err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		os.Exit(2)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := day(ctx, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "day: seed %d: %v\n", o.seed, err)
		os.Exit(1)
	}
	fmt.Print(r)
	faults := r.faults()
	for _, f := range faults {
		fmt.Println("FAULT:", f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

func (o options) check() error {
	switch {
	case o.pages < 1 || o.hosts < 1 || o.receivers < 1:
		return errors.New("--pages, --hosts and --receivers must be at least 1")
	case o.hosts > o.pages:
		return errors.New("--hosts must not be more than --pages")
	case o.rate < 1 || o.rate > 1000:
		return errors.New("--rate must be 1 to 1000")
	case o.length < 3*interval:
		return fmt.Errorf("--for must be at least %v: the first pass fills the caches", 3*interval)
	case !(o.change >= 0 && o.change <= 1):
		return errors.New("--change must be 0 to 1")
	}
	return nil
}

// day runs the process for the simulated time and returns what was seen.
func day(ctx context.Context, o options) (*report, error) {
	root := o.dir
	if root == "" {
		var err error
		if root, err = os.MkdirTemp("", "day"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(root)
	} else if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	if o.binary == "" {
		var err error
		if o.binary, err = buildStream(ctx, root); err != nil {
			return nil, err
		}
	}
	c := newClock(root)
	w, err := newPageServer(o, c)
	if err != nil {
		return nil, err
	}
	defer w.close()
	b, err := newInbox(o, c)
	if err != nil {
		return nil, err
	}
	defer b.close()
	p, err := startProcess(ctx, o, root, w, b)
	if err != nil {
		return nil, err
	}
	r, err := runDay(ctx, o, c, w, b, p)
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%w\n%s", err, p.log)
	}
	return r, p.stop()
}

// runDay lets the day pass while p runs, and returns what was seen.
func runDay(ctx context.Context, o options, c *clock, w *pageServer, b *inbox, p *process) (*report, error) {
	r := &report{options: o}
	err := p.waitFor(ctx, o.first, "the first read of all pages", w.allRead)
	if err != nil {
		return nil, err
	}
	if r.first, err = p.sample(ctx); err != nil {
		return nil, err
	}
	if err := c.speedUp(o.rate); err != nil {
		return nil, err
	}
	w.startDay()
	began := c.now()
	// The last hour has no trouble, so that all can be told by its end.
	for end := began.Add(o.length); c.now().Before(end); {
		if err := p.pause(ctx, time.Second); err != nil {
			return nil, err
		}
		s, err := p.sample(ctx)
		if err != nil {
			return nil, err
		}
		s.at = c.now().Sub(began)
		r.samples = append(r.samples, s)
	}
	w.endTrouble()
	b.endTrouble()
	// What a receiver missed is tried again within two hours.
	limit := max(6*interval/time.Duration(o.rate), 30*time.Second)
	switch err := p.waitFor(ctx, limit, "everything to be told", func() bool { return w.lastVersionsTaken() && b.hasAll(w.lastVersions()) }); {
	case errors.Is(err, errTimeout): // the report says what is missing
	case err != nil:
		return nil, err
	}
	last, err := p.sample(ctx)
	if err != nil {
		return nil, err
	}
	r.checks = last.checks - r.first.checks
	r.failed = last.failed - r.first.failed
	r.cpu = last.cpu - r.first.cpu
	r.dead = last.dead
	r.unhandled = last.unhandled
	r.pages = w.verdict()
	r.receivers = b.verdict(w.lastVersions())
	return r, nil
}
