//go:build !linux

package memory

import "math"

// addressSpace returns math.MaxInt64: limits of the address space are looked at on Linux only.
func addressSpace() int64 { return math.MaxInt64 }
