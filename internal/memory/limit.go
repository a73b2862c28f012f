package memory

import (
	"math"
	"os"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

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
