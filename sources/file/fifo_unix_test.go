//go:build unix

package filesource

import (
	"syscall"
	"testing"
)

// makeFIFO makes a FIFO at path. It returns false where the system has none.
func makeFIFO(t *testing.T, path string) bool {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	return true
}
