//go:build !linux

package memory

import "math"

// addressSpace returns math.MaxInt64. The limit is read on Linux only.
func addressSpace() int64 { return math.MaxInt64 }
