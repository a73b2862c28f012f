//go:build unix

package store

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// LockHolder returns the process that has locked the directory dir, as " (process 123)", or "" where that cannot
// be found out.
func LockHolder(dir string) string {
	f, err := os.Open(filepath.Join(dir, "LOCK"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock) != nil || lock.Type == syscall.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", lock.Pid)
}
