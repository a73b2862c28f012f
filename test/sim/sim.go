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
	// WrapProcessor, if not nil, wraps the processor of a group, on each start: to break it.
	WrapProcessor func(group string, p flow.Processor) flow.Processor
	// Processes is how many processes share the lanes over Kafka; 1 is one that keeps all
	// itself, and 0 leaves the choice to the seed.
	Processes int
	// OnlyPowerCuts makes every crash a power cut, many of them just after a receiver was told, and
	// nothing durable that was not asked to be. It is for one process.
	OnlyPowerCuts bool
	// Fault breaks the protocol of processes that share lanes.
	Fault Fault
	// ExpireDelay makes index give pages up so many checks later than it must.
	ExpireDelay int
	// DuplicateAttempts makes the pool of delivery make each attempt twice: a broken pool.
	DuplicateAttempts bool
}

// Stats counts what happened in a run.
type Stats struct {
	Steps, Crashes, PowerCuts, Nacks, InnerRetries                                                      int
	Checks, Failures, Duplicates                                                                        int
	Commands, Pages                                                                                     int
	Versions, Changes, DoubtfulChanges                                                                  int
	ExpectedNotifications, Expectations, DoubtfulExpectations                                           int
	Notifications, Diffs, DeadLetters, Repeats                                                          int
	ExpiredPages, DormantSubscriptions, Timeouts, Recoveries, Expiries, WithdrawnNotifications, Replays int
	ReceiverEvents, OfflineChecks, ClockJumps                                                           int
	LaneMoves, Freezes, WipedDisks, RebuiltCopies                                                       int // of lanes, processes and their disks
	RestoredRecords, Compactions, Outages                                                               int
	Transactions, FencedCommits, UnknownCommits                                                         int
	LazyMessages, LostMessages, LaneRoundTrips                                                          int // messages that waited for a transaction, and that were lost
	RefusedCommands                                                                                     int // commands
	RevertedPages, StaleDeliveries                                                                      int // pages that are again as they were, after moves; deliveries by earlier owners
	BatchedNotifications                                                                                int // notifications that were delivered behind others in one attempt
	Digests, MergedDigests                                                                              int // digests, and those with several items
	QuietNotifications                                                                                  int // notifications that came in quiet hours
	FollowTrees, LinkedPages, LinkedPagesAtEnd                                                          int // subscriptions with follow, pages that began for them, and those watched in the end
	Challenges, ReplacedPages                                                                           int // checks that found a challenge, and those where it was taken for no text
	PausedSubscriptions, ResumedSubscriptions                                                           int // of subscriptions
	ValueChanges                                                                                        int // changes of values that were told
	FeedChanges, ReturnedArticles                                                                       int // changes of feeds that were told, and articles that came back as they were
	SuppressedRepeats                                                                                   int // notifications that another one of the same change made superfluous
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
