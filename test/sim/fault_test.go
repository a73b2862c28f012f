package sim

import "testing"

// TestFaults breaks the protocol of processes that share lanes in one place each and wants
// the simulator to notice.
func TestFaults(t *testing.T) {
	shared := func(seed uint64, f Fault) Config { return Config{Seed: seed, Processes: 2 + int(seed%3), Fault: f} }
	for seed := uint64(1); seed <= 20; seed++ { // as they are without any
		if _, err := Run(shared(seed, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for name, fault := range map[string]Fault{
		"an earlier owner that is not fenced":                      NoFence,
		"work that begins before the copy is complete":             EarlyWork,
		"a copy that is trusted":                                   TrustedCopy,
		"a copy that keeps what was not committed":                 KeptTail,
		"a copy that lacks tombstones":                             OldCopy,
		"outputs outside of the transaction":                       PlainOutputs,
		"a transaction without positions":                          NoPosition,
		"a position ahead of state that waits":                     LostLazies,
		"a transaction without the state of what waited before it": LazyLeftBehind,
		"a batch that is acknowledged before it is written":        EarlyAck,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught(t, "", func(seed uint64) Config { return shared(seed, fault) })
		})
	}
}
