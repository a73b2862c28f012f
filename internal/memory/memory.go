// Package memory finds out how much memory the process may use, limits what concurrent work takes of it, and
// reuses the stacks of goroutines.
package memory

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"sync"

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
