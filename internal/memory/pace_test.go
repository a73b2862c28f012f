package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]uint64{0: 400, 10 << 20: 400, 32 << 20: 200, 50 << 20: 125, 64 << 20: 100, 1 << 40: 100} {
		if got := gcPercentFor(live); got != want {
			t.Errorf("a heap with %d live bytes may grow by %d %%, want %d", live, got, want)
		}
	}
}

// TestPace: a small heap is collected less often, a large one as usual, and GOGC is heeded.
func TestPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	t.Setenv("GOGC", "77")
	Pace()
	if got := gcPercent(); got != 77 {
		t.Fatalf("GOGC=77 was replaced by %d", got)
	}
	t.Setenv("GOGC", "")
	Pace()
	for gcPercent() != maxGCPercent {
		runtime.GC()
		runtime.Gosched()
	}
	large := make([]byte, 2*minHeapGrowth)
	for gcPercent() != minGCPercent {
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(large)
}

func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
