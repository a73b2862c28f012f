package memory

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
)

// reservedAddressSpace is how much address space a process maps soon after its start, beside its heap:
// the stacks of its threads, its store, and what the heap reserves in large pieces.
const reservedAddressSpace = 512 << 20

// minAddressSpace is the least that addressSpace returns.
const minAddressSpace = 64 << 20

// addressSpace returns how many bytes of address space RLIMIT_AS leaves for the heap, or
// math.MaxInt64 if there is no such limit. It subtracts what is mapped already: the Go runtime
// and libc map more than a gigabyte at the start, which they do not use.
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
	return max(int64(limit.Cur)-mapped-reservedAddressSpace, minAddressSpace)
}
