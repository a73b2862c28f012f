//go:build unix

// Command campaign kills the real binary at random moments and checks that nothing is lost. A
// page server records which versions a completed answer delivered, receivers record the
// notifications, and a judge that imports nothing of this module compares the two. Meanwhile
// pages fail and recover, or fail until they expire; receivers fail, stall and recover;
// subscriptions come and go; clocks jump; backups are made; dead letters are replayed; some
// clients use digests. The health events are judged, too. The command prints its seed and
// figures. It exits with 1 if anything was lost or wrong, or if one of these actions never
// happened.
//
// With --transport kafka several processes share one set of pages, and are killed, stopped,
// frozen beyond their session and robbed of their disks; the broker is killed, too, and a
// reader of the topic changes watches that each document's versions follow one another. In the end a reader of the
// compacted topic pages must have exactly the current texts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	kills    int
	duration time.Duration
	seed     uint64
	dirs     int
	pages    int
	sabotage bool
	binary   string
	keep     bool
	verbose  bool
	without  []string

	// What follows is for the transport Kafka.
	transport   string
	brokers     string
	processes   int
	wipe        bool
	freeze      bool
	brokerKills int
}

func main() {
	var o options
	flag.IntVar(&o.kills, "kills", 30, "how many times processes are killed, in all directories together")
	flag.DurationVar(&o.duration, "for", 0, "kill until this much time has passed, instead of -kills")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of all that is random here; 0 is a new one")
	flag.IntVar(&o.dirs, "dirs", 2, "data directories, each with a process of its own")
	flag.IntVar(&o.pages, "pages", 20, "pages that are watched in each directory")
	flag.BoolVar(&o.sabotage, "sabotage", false, "commit outputs after the state and the position that they belong to, which the campaign must notice")
	flag.StringVar(&o.binary, "binary", "", "a binary of test/campaign/stream, instead of building one")
	flag.BoolVar(&o.keep, "keep", false, "keep the data directories, and say where they are")
	flag.BoolVar(&o.verbose, "v", false, "show what the processes log")
	without := flag.String("without", "", "what is left out, separated by commas: jumps, reloads, expiry, backups, replays")
	flag.StringVar(&o.transport, "transport", transportLocal, "local, or kafka: one set of pages that several processes share")
	flag.StringVar(&o.brokers, "brokers", os.Getenv("VOKTER_KAFKA"), "with Kafka: brokers (HOST:PORT,...), or a command that runs one (CMD start DIR PORT, CMD kill DIR, CMD stop DIR); the default is VOKTER_KAFKA")
	flag.IntVar(&o.processes, "processes", 3, "with Kafka: how many processes share the pages")
	flag.BoolVar(&o.wipe, "wipe", false, "with Kafka: delete data directories between two lives")
	flag.BoolVar(&o.freeze, "freeze", false, "with Kafka: stop processes for longer than their session lasts, and let them go on")
	flag.IntVar(&o.brokerKills, "broker-kills", 0, "with Kafka: how many times the broker is killed, which must be one that the campaign runs")
	flag.Parse()
	if *without != "" {
		o.without = strings.Split(*without, ",")
	}
	if err := o.check(); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(2)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := campaign(ctx, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "campaign: seed %d: %v\n", o.seed, err)
		code = 1
	}
	os.Exit(code)
}

// The transports.
const (
	transportLocal = "local"
	transportKafka = "kafka"
)

// check says what is wrong with the flags, and leaves out what the transport does not know.
func (o *options) check() error {
	switch {
	case o.transport == transportLocal:
		return nil
	case o.transport != transportKafka:
		return fmt.Errorf("there is no transport %q", o.transport)
	case o.brokers == "":
		return errors.New("--transport kafka needs --brokers or VOKTER_KAFKA")
	case o.brokerKills > 0 && brokerAddresses.MatchString(o.brokers):
		return fmt.Errorf("the brokers at %s are not ours to kill: give a command that runs one", o.brokers)
	case o.processes < 1:
		return errors.New("at least one process is needed")
	}
	o.without = append(o.without, "backups") // there is no store to copy: the state is in Kafka
	return nil
}

// campaign runs the processes under kills and returns the exit code.
func campaign(ctx context.Context, o options) (int, error) {
	root, err := os.MkdirTemp("", "campaign")
	if err != nil {
		return 1, err
	}
	if o.keep {
		fmt.Println("the data directories are in", root)
	} else {
		defer os.RemoveAll(root)
	}
	if o.binary == "" {
		o.binary = filepath.Join(root, "vokter-stream")
		if err := buildStream(ctx, o.binary); err != nil {
			return 1, err
		}
	}
	if o.sabotage {
		if err := os.Setenv(sabotageVariable, "1"); err != nil { // every process inherits it
			return 1, err
		}
	}
	var (
		mu    sync.Mutex
		wait  sync.WaitGroup
		did   counters
		total verdict
		first error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := runLocal
	if o.transport == transportKafka {
		o.dirs, run = 1, runKafka
	}
	for n := range o.dirs {
		wait.Go(func() {
			v, err := run(ctx, o, n, filepath.Join(root, fmt.Sprint(n)), &did)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = fmt.Errorf("directory %d: %w", n, err)
				cancel()
			}
			total.add(n, v)
		})
	}
	wait.Wait()
	for event, n := range total.events {
		did.addN("health_"+event, n)
	}
	for _, line := range total.details {
		fmt.Println(line)
	}
	fmt.Printf("seed=%d dirs=%d pages=%d %s notifications=%d digests=%d collected=%d repeats=%d lost=%d wrong=%d\n",
		o.seed, o.dirs, o.dirs*o.pages, &did, total.notifications, total.digests, total.collected, total.repeats, total.lost, total.wrong)
	switch {
	case first != nil:
		return 1, first
	case total.lost > 0 || total.wrong > 0:
		return 1, nil
	case total.notifications == 0:
		return 1, fmt.Errorf("nothing was notified, so nothing was tested")
	case total.collected <= total.digests:
		return 1, fmt.Errorf("no digest told several things, so that was not tested")
	}
	if missing := did.missing(o.without); len(missing) > 0 {
		return 1, fmt.Errorf("never happened, so was not tested: %s", strings.Join(missing, ", "))
	}
	return 0, nil
}

// runLocal runs the campaign on one directory.
func runLocal(ctx context.Context, o options, n int, dir string, did *counters) (verdict, error) {
	d, err := newDirectory(o, n, dir, did)
	if err != nil {
		return verdict{}, err
	}
	defer d.close()
	if err := d.configure(); err != nil {
		return verdict{}, err
	}
	share := o.kills / o.dirs
	if n < o.kills%o.dirs {
		share++
	}
	began := time.Now()
	for kills := 0; o.duration > 0 && time.Since(began) < o.duration || o.duration == 0 && kills < share; kills++ {
		if err := d.runAndKill(ctx); err != nil {
			return verdict{}, err
		}
	}
	err = d.finish(ctx)
	if ctx.Err() != nil {
		return verdict{}, err // it was not finished
	}
	return judge(d.evidence()), err // what arrived may say why
}

// add adds the verdict o on directory n.
func (v *verdict) add(n int, o verdict) {
	v.notifications += o.notifications
	v.digests += o.digests
	v.collected += o.collected
	v.repeats += o.repeats
	v.lost += o.lost
	v.wrong += o.wrong
	for event, n := range o.events {
		if v.events == nil {
			v.events = map[string]int{}
		}
		v.events[event] += n
	}
	for _, line := range o.details {
		v.details = append(v.details, fmt.Sprintf("directory %d: %s", n, line))
	}
}
