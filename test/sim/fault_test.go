package sim

import "testing"

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
