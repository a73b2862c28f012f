package sim

import (
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestCatchesBatches breaks the results of attempts that deliver several notifications, and
// wants the simulator to notice.
func TestCatchesBatches(t *testing.T) {
	type result = map[string]any
	for name, c := range map[string]struct {
		alter func(r *result)
		want  string // in the error
	}{
		"what was delivered before the last not counted": {func(r *result) { delete(*r, "before") }, ""},
		"a failure behind others taken for a success": {func(r *result) {
			if (*r)["before"] != nil {
				(*r)["delivered"] = true
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := alterInput(alterBody("vokter.delivery.result.v1", c.alter))
			expectCaught(t, c.want, func(seed uint64) Config {
				broken := m()
				return Config{Seed: 4*seed + crowdedRemainder, Steps: 2000, Processes: 1, WrapProcessor: func(g string, p flow.Processor) flow.Processor {
					if g == flow.GroupDelivery {
						return broken(p)
					}
					return p
				}}
			})
		})
	}
}

// expectCaughtIn fails t unless the simulator notices the mutation m of a group.
func expectCaughtIn(t *testing.T, group string, m mutation, stormy bool, want string) {
	t.Helper()
	expectCaught(t, want, func(seed uint64) Config {
		broken := m()
		return Config{Seed: seed, OnlyPowerCuts: stormy, Processes: 1, WrapProcessor: func(g string, p flow.Processor) flow.Processor {
			if g == group {
				return broken(p)
			}
			return p
		}}
	})
}
