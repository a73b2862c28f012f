package store

import (
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullAt is a file system whose disk is full in one directory.
type fullAt struct {
	vfs.FS
	dir string
}

func (f *fullAt) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err != nil || !within(name, f.dir) {
		return file, err
	}
	return fullFile{file}, nil
}

func (f *fullAt) Link(oldname, newname string) error {
	if within(newname, f.dir) {
		return syscall.ENOSPC
	}
	return f.FS.Link(oldname, newname)
}

type fullFile struct{ vfs.File }

func (fullFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
