package sim

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
)

// Config says what is run.
type Config struct {
	// Seed is where all chance comes from.
	Seed uint64
	// Steps is how many steps are taken before things stop going wrong; 0 means 700.
	Steps int
	// Trace keeps a readable record of every step for the error.
	Trace bool
	// Wrap, if not nil, wraps the processor of a group, on each start: to break it.
	Wrap func(group string, p flow.Processor) flow.Processor
	// Processes is how many processes share the lanes over Kafka; 1 is one that keeps all
	// itself, and 0 leaves the choice to the seed.
	Processes int
	// Stormy makes every crash a power cut, many of them just after a receiver was told, and
	// nothing durable that was not asked to be. It is for one process.
	Stormy bool
	// Fault breaks the protocol of processes that share lanes.
	Fault Fault
	// Late makes index give pages up so many checks later than it must.
	Late int
	// Twice makes the pool of delivery make each attempt twice: a broken pool.
	Twice bool
}

// Stats counts what happened in a run.
type Stats struct {
	Steps, Crashes, PowerCuts, Nacks, Waits int
	Checks, Failures, Duplicates            int
	Commands, Pages                         int
	Versions, Changes, Doubtful             int
	Expected, Expectations, Unsure          int
	Notifications, Diffs, Dead, Repeats     int
	Expiries, Timeouts, Withdrawn, Replays  int
	Health, Offline, Jumps                  int
	Moves, Freezes, Wipes, Rebuilds         int // of lanes, processes and their disks
	Restored, Compactions, Outages          int
	Transactions, Fenced, Unknown           int
	Lazy, Lost, Shuttles                    int // messages that waited for a transaction, and that were lost
	Refused                                 int // commands
	Returns, Stale                          int // pages that are again as they were, after moves; deliveries by earlier owners
	Batched                                 int // notifications that were delivered behind others in one attempt
	Digests, Merged                         int // digests, and those with several items
	Hushed                                  int // notifications that came in quiet hours
	Trees, Linked, Leaves                   int // subscriptions with follow, pages that began for them, and those watched in the end
	Walls, Replaced                         int // checks that found a challenge, and those where it was taken for no text
	Pauses, Resumed                         int // of subscriptions
	Values                                  int // changes of values that were told
	Feeds, Back                             int // changes of feeds that were told, and articles that came back as they were
	Unrepeated                              int // notifications that another one of the same change made superfluous
}

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// Failure is a run in which something was missed, invented, repeated, out of order, or
// broke.
type Failure struct {
	Seed  uint64
	Err   error
	Trace []string
}

func (f *Failure) Error() string { return fmt.Sprintf("seed %d: %v", f.Seed, f.Err) }
func (f *Failure) Unwrap() error { return f.Err }

// Report returns the error with the trace.
func (f *Failure) Report() string { return strings.Join(f.Trace, "\n") + "\n" + f.Error() }

// Run runs one seed to its end and compares. The error, if any, is a *Failure.
func Run(cfg Config) (Stats, error) {
	if cfg.Steps == 0 {
		cfg.Steps = 700
	}
	w := newWorld(cfg)
	err := w.run(w.cfg.Steps)
	w.stats.Steps = w.steps
	if err != nil {
		return w.stats, &Failure{cfg.Seed, err, w.trace}
	}
	return w.stats, nil
}
