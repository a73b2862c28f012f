// Package memory says how much memory the process may use, and shares it out.
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

// smallest is how many pieces of work must at least fit into a Budget for one not to wait.
const smallest = 64

// Budget is memory that pieces of work share. It is safe for concurrent use.
type Budget struct {
	room *semaphore.Weighted
	size int64
}

// NewBudget returns a Budget of size bytes, at least 1.
func NewBudget(size int64) *Budget {
	size = max(size, 1)
	return &Budget{room: semaphore.NewWeighted(size), size: size}
}

// Take waits until there is room for bytes, in the order of the calls, and returns a function
// that gives the room back. Whoever wants more than there is gets all of it. What takes less
// than a 64th of the Budget does not wait and is not counted, so that small pages are not held
// up by large ones. Take fails with the cause of ctx where that ends first.
func (b *Budget) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if bytes < b.size/smallest || bytes <= 0 {
		return func() {}, nil
	}
	bytes = min(bytes, b.size)
	if b.room.Acquire(ctx, bytes) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { b.room.Release(bytes) }, nil
}

// Limit returns how many bytes of memory the process may use: the least of GOMEMLIMIT, the
// limit of its cgroup, what RLIMIT_AS (ulimit -v) left for the heap at the first call, and the memory
// of the machine. It is math.MaxInt64 where none of them is known.
func Limit() int64 {
	system, err := memlimit.FromSystem()
	if err != nil {
		system = math.MaxInt64
	}
	return min(debug.SetMemoryLimit(-1), imposed(), clamp(system))
}

// imposed is the limit that was set for this process, or math.MaxInt64. It is found out once:
// what the address space of a process holds when it starts is not to be shared out.
var imposed = sync.OnceValue(func() int64 {
	limit := addressSpace()
	if cgroup, err := memlimit.FromCgroup(); err == nil {
		limit = min(limit, clamp(cgroup))
	}
	return limit
})

func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Heed makes the garbage collector keep the program within four fifths of what its cgroup or
// RLIMIT_AS allows, where the operator did not set GOMEMLIMIT. It is for func main.
func Heed() {
	if limit := imposed(); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 5 * 4)
	}
}
