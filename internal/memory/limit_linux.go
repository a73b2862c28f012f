package memory

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
)

// mappedLater is how much address space a process maps soon after it started, beside what its
// heap needs: the stacks of its threads, its store, and what the heap reserves in large pieces.
const mappedLater = 512 << 20

// leastLeft is how much address space is taken to be left at least.
const leastLeft = 64 << 20

// addressSpace returns how many bytes of address space RLIMIT_AS leaves for the heap, or
// math.MaxInt64 where there is no such limit. The Go runtime and libc map more than a gigabyte
// at the start that they do not use.
func addressSpace() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	var mapped int64
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		first, _, _ := bytes.Cut(statm, []byte(" "))
		pages, _ := strconv.ParseInt(string(first), 10, 64)
		mapped = pages * int64(os.Getpagesize())
	}
	return max(int64(limit.Cur)-mapped-mappedLater, leastLeft)
}
