//go:build unix

package filesource

import (
	"io/fs"
	"syscall"
)

// inodeNumber returns the file's number on its disk, which a new file with the same name does not have.
func inodeNumber(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino) //nolint:unconvert // some systems have other types
	}
	return 0
}
