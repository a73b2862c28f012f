package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// minHeapGrowth is how many bytes are allocated between two garbage collections at least, as far as
	// maxGCPercent allows it. By the default of the Go runtime a heap of 10 MB is collected after every
	// 10 MB, which takes a sixth of the processor time of a first read.
	minHeapGrowth = 64 << 20
	minGCPercent  = 100
	maxGCPercent  = 400
)

// Pace makes the garbage collector run less often while the heap is small, unless GOGC is set. A heap of
// more than 64 MB is collected as usual. The memory limit holds in any case. It is for func main.
func Pace() {
	if os.Getenv("GOGC") == "" {
		tuneAfterGC(new(gcSentinel))
	}
}

// gcSentinel is garbage whose finalizer runs after each collection. It holds a pointer because the runtime puts small
// values without pointers together and may never free them.
type gcSentinel struct{ _ *byte }

// tuneAfterGC sets the percentage for the next garbage collection, now and after each collection.
func tuneAfterGC(c *gcSentinel) {
	now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	if p := gcPercentFor(now[0].Value.Uint64()); p != now[1].Value.Uint64() {
		debug.SetGCPercent(int(p))
	}
	runtime.SetFinalizer(c, tuneAfterGC)
}

// gcPercentFor returns the growth in per cent after which a heap with that many live bytes is collected.
func gcPercentFor(live uint64) uint64 {
	const step = 25 // the percentage is not set again for each small change
	return min(max(minHeapGrowth*100/max(live, 1)/step*step, minGCPercent), maxGCPercent)
}
