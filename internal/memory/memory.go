// Package memory finds out how much memory the process may use, limits what concurrent work takes of it, and
// reuses the stacks of goroutines.
package memory

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sync/semaphore"
)

// uncountedFraction says which share of a Budget work may take without being counted: less than one
// part in uncountedFraction.
const uncountedFraction = 64

// Budget is an amount of memory that concurrent work shares. It is safe for concurrent use.
type Budget struct {
	semaphore *semaphore.Weighted
	size      int64
}

// NewBudget returns a Budget of size bytes, at least 1.
func NewBudget(size int64) *Budget {
	size = max(size, 1)
	return &Budget{semaphore: semaphore.NewWeighted(size), size: size}
}

// Take waits until bytes are free, in the order of the calls, and returns a function that gives
// them back. A request for more than the Budget gets all of it. A request for less than a 64th
// of the Budget neither waits nor counts, so that small pages do not wait for large ones. Take
// fails with the cause of ctx if ctx ends first.
func (b *Budget) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if bytes < b.size/uncountedFraction || bytes <= 0 {
		return func() {}, nil
	}
	bytes = min(bytes, b.size)
	if b.semaphore.Acquire(ctx, bytes) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { b.semaphore.Release(bytes) }, nil
}

// Limit returns how many bytes of memory the process may use: the least of GOMEMLIMIT, the
// limit of its cgroup, what RLIMIT_AS (ulimit -v) left for the heap at the first call, and the
// memory of the machine. It is math.MaxInt64 if none of them is known.
func Limit() int64 {
	system, err := memlimit.FromSystem()
	if err != nil {
		system = math.MaxInt64
	}
	return min(debug.SetMemoryLimit(-1), imposedLimit(), clampToInt64(system))
}

// imposedLimit returns the least of the limits of the cgroup and of RLIMIT_AS, or math.MaxInt64. It
// is computed once, at the start: later the address space holds the heap, too.
var imposedLimit = sync.OnceValue(func() int64 {
	limit := addressSpace()
	if cgroup, err := memlimit.FromCgroup(); err == nil {
		limit = min(limit, clampToInt64(cgroup))
	}
	return limit
})

func clampToInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Heed sets the memory limit of the Go runtime to four fifths of what the cgroup or RLIMIT_AS
// allows, unless GOMEMLIMIT is set. It is for func main.
func Heed() {
	if limit := imposedLimit(); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 5 * 4)
	}
}

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

// Pool is a set of goroutines that wait for functions to run. Their stacks have grown already; to grow the
// stack of a new goroutine costs more than a short function. If none is waiting, Go starts another one. A Pool
// is safe for concurrent use.
type Pool struct {
	tasks   chan func()
	done    chan struct{}
	idle    atomic.Int64
	maxIdle int64
}

// NewPool returns a Pool that keeps at most keep waiting goroutines.
func NewPool(keep int) *Pool {
	return &Pool{tasks: make(chan func()), done: make(chan struct{}), maxIdle: int64(keep)}
}

// Go runs f on a goroutine of the pool and returns at once. f must not panic.
func (p *Pool) Go(f func()) {
	select {
	case p.tasks <- f:
	default:
		go p.run(f)
	}
}

func (p *Pool) run(f func()) {
	for {
		f()
		if p.idle.Add(1) > p.maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case f = <-p.tasks:
			p.idle.Add(-1)
		case <-p.done:
			return
		}
	}
}

// Close ends the waiting goroutines, and the others when their functions return. It must be
// called only once. Go still works after it.
func (p *Pool) Close() { close(p.done) }
