package sim

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Int("sim.seeds", 20, "how many seeds TestSeeds runs; from 100 on, the simulator must notice deliberate faults, too")
	first = flag.Uint64("sim.first", 1, "the first of them")
	seed  = flag.Uint64("sim.seed", 0, "run this seed only, with its trace")
	steps = flag.Int("sim.steps", 0, "how many steps things may go wrong for")
)

// TestSeeds runs many seeds and holds each against the oracle. A failing one is run again
// with a trace by -sim.seed.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		stats, err := Run(Config{Seed: *seed, Steps: *steps, Trace: true})
		if f, ok := errors.AsType[*Failure](err); ok {
			t.Fatal("\n" + f.Report())
		}
		t.Logf("%+v", stats)
		return
	}
	var (
		next  atomic.Int64
		mu    sync.Mutex
		total Stats
		wait  sync.WaitGroup
		bad   int
	)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(*seeds); i = next.Add(1) - 1 {
				s := *first + uint64(i)
				stats, err := Run(Config{Seed: s, Steps: *steps})
				mu.Lock()
				total.Add(stats)
				if err != nil {
					if bad++; bad <= 5 {
						t.Errorf("%v\nreplay: go test ./test/sim -run TestSeeds -sim.steps=%d -sim.seed=%d", err, *steps, s)
					}
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	t.Logf("%d seeds, %d bad: %+v", *seeds, bad, total)
	if *seeds < 100 {
		return // too few to say more
	}
	if limit := total.Changes / 20; total.DoubtfulChanges > limit {
		t.Errorf("%d of %d changes are in doubt, want at most %d", total.DoubtfulChanges, total.Changes, limit)
	}
	// What a page says after an outage differs in much from what it said before, so that more is in doubt.
	if limit := total.Expectations / 16; total.DoubtfulExpectations > limit {
		t.Errorf("%d of %d expectations are in doubt, want at most %d", total.DoubtfulExpectations, total.Expectations, limit)
	}
	if *seeds >= 1000 && total.SuppressedRepeats == 0 {
		t.Errorf("no notification of a linked page repeats another one in %d seeds", *seeds)
	}
	for name, n := range map[string]int{
		"crashes": total.Crashes, "power cuts": total.PowerCuts, "nacks": total.Nacks, "failures": total.Failures,
		"duplicates": total.Duplicates, "notifications": total.Notifications, "dead letters": total.DeadLetters, "repeats": total.Repeats,
		"expired pages": total.ExpiredPages, "timeouts": total.Timeouts, "dormant subscriptions": total.DormantSubscriptions, "recoveries": total.Recoveries, "expiries": total.Expiries, "withdrawn notifications": total.WithdrawnNotifications,
		"replays":                    total.Replays,
		"health events of receivers": total.ReceiverEvents, "checks offline": total.OfflineChecks, "jumps of the clock": total.ClockJumps,
		"paused subscriptions": total.PausedSubscriptions, "ends of pauses": total.ResumedSubscriptions, "moved lanes": total.LaneMoves, "frozen processes": total.Freezes, "wiped disks": total.WipedDisks, "copies made anew": total.RebuiltCopies,
		"compactions": total.Compactions, "outages": total.Outages, "fenced owners": total.FencedCommits, "unknown commits": total.UnknownCommits,
		"messages without a transaction": total.LazyMessages, "lost messages": total.LostMessages,
		"pages changed and changed back while they move": total.LaneRoundTrips,
		"refused commands": total.RefusedCommands, "pages that return after moves": total.RevertedPages,
		"deliveries by earlier owners": total.StaleDeliveries,
		"notifications in batches":     total.BatchedNotifications,
		"digests of several items":     total.MergedDigests, "notifications in quiet hours": total.QuietNotifications, "subscriptions that follow links": total.FollowTrees, "pages that began because of a link": total.LinkedPages,
		"linked pages in the end": total.LinkedPagesAtEnd,
		"changes of values":       total.ValueChanges,
		"changes of feeds":        total.FeedChanges,
		"articles that come back": total.ReturnedArticles,
		"challenges":              total.Challenges, "replaced pages": total.ReplacedPages,
	} {
		if n == 0 {
			t.Errorf("no %s in %d seeds: they prove nothing", name, *seeds)
		}
	}
}

// TestRepeatable runs one seed twice.
func TestRepeatable(t *testing.T) {
	var traces [2][]string
	for i := range traces {
		w := newWorld(Config{Seed: *first, Steps: 300, Trace: true})
		if err := w.run(w.cfg.Steps); err != nil {
			t.Fatal(err)
		}
		traces[i] = w.trace
	}
	if got, want := fmt.Sprint(traces[0]), fmt.Sprint(traces[1]); got != want {
		t.Error("one seed gave two runs")
	}
}

// TestStorm cuts the power again and again just after a receiver was told.
func TestStorm(t *testing.T) {
	for s := range uint64(min(*seeds/4, 50)) {
		if _, err := Run(Config{Seed: *first + s, OnlyPowerCuts: true, Processes: 1}); err != nil {
			t.Error(err)
		}
	}
}

// TestCopies starts on a copy of a store, while the original goes on.
func TestCopies(t *testing.T) {
	for s := range uint64(min(*seeds/4, 60)) {
		if _, err := RunCopied(Config{Seed: *first + s}); err != nil {
			t.Error(err)
		}
	}
}

// TestFaults breaks the protocol of processes that share lanes in one place each and wants
// the simulator to notice.
func TestFaults(t *testing.T) {
	shared := func(seed uint64, f Fault) Config { return Config{Seed: seed, Processes: 2 + int(seed%3), Fault: f} }
	for seed := uint64(1); seed <= uint64(min(*seeds/4, 20)); seed++ { // as they are without any
		if _, err := Run(shared(seed, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for name, fault := range map[string]Fault{
		"an earlier owner that is not fenced":                      NoFence,
		"work that begins before the copy is complete":             WorkBeforeRestore,
		"a copy that is trusted":                                   CopyNotCaughtUp,
		"a copy that keeps what was not committed":                 UncommittedKept,
		"a copy that lacks tombstones":                             OldCopyKept,
		"outputs outside of the transaction":                       OutputsOutsideTransaction,
		"a transaction without positions":                          NoPositions,
		"a position ahead of state that waits":                     PositionAheadOfLazyState,
		"a transaction without the state of what waited before it": LazyStateLeftBehind,
		"a batch that is acknowledged before it is written":        AckBeforeWrite,
		"a message of a chain that fails after it emitted":         FailedOutputsKept,
		"a savepoint that is not undone":                           SavepointNotUndone,
		"a batch of a backlog that runs beside an edit":            BatchBesideEdit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectCaught(t, "", func(seed uint64) Config { return shared(seed, fault) })
		})
	}
}
