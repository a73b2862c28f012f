//go:build !unix

package filesource

import "testing"

// makeFIFO makes a FIFO at path. It returns false where the system has none.
func makeFIFO(*testing.T, string) bool { return false }
