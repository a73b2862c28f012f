package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system of a store's directory. Writes there wait while the disk is full.
// Writes elsewhere, to a backup, fail at once, because that may be another disk.
type disk struct {
	vfs.FS
	underlying vfs.FS
	dir        string
	// fatal is called when the log cannot be continued, and does not return. It is nil while
	// the store is being opened.
	fatal atomic.Pointer[func(error)]
}

// fsFor returns the file system in which to create the file called name.
func (d *disk) fsFor(name string) vfs.FS {
	if isWithin(name, d.dir) {
		return d.FS
	}
	return d.underlying
}

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.fsFor(name).Create(name, c)
	d.checkLogCreated(name, err)
	return f, err
}

func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.fsFor(newname).ReuseForWrite(oldname, newname, c)
	d.checkLogCreated(newname, err)
	return f, err
}

// checkLogCreated ends the process if a new log could not be created. Pebble would panic.
func (d *disk) checkLogCreated(name string, err error) {
	if err == nil || filepath.Ext(name) != ".log" || filepath.Dir(absolutePath(name)) != absolutePath(d.dir) {
		return
	}
	if fatal := d.fatal.Load(); fatal != nil {
		(*fatal)(err)
	}
}

func (d *disk) Link(oldname, newname string) error { return d.fsFor(newname).Link(oldname, newname) }

func (d *disk) MkdirAll(dir string, perm os.FileMode) error { return d.fsFor(dir).MkdirAll(dir, perm) }

// checkComplete returns an error if the directory has only a part of a store, because Pebble would
// create a new store there.
func (d *disk) checkComplete() error {
	if d.hasFile("marker.manifest.") || !d.hasFile(".sst") && !d.hasFile(".log") && !d.hasFile("marker.format-version.") {
		return nil
	}
	return damageError(d.dir, "", errors.New("its file marker.manifest.* is missing"))
}

// hasFile reports whether the directory has a file whose name begins or ends with part.
func (d *disk) hasFile(part string) bool {
	names, _ := d.List(d.dir) // Pebble will report a directory that cannot be read
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, part) || strings.HasSuffix(n, part)
	})
}

// isWithin reports whether name is dir or in it.
func isWithin(name, dir string) bool {
	rel, err := filepath.Rel(absolutePath(dir), absolutePath(name))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolveSymlinks is the absolute form of name, without symbolic links as far as it exists.
func resolveSymlinks(name string) string {
	name = absolutePath(name)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	parent := filepath.Dir(name)
	if parent == name {
		return name
	}
	return filepath.Join(resolveSymlinks(parent), filepath.Base(name))
}

// absolutePath is the absolute form of name, or name where the working directory is not known.
func absolutePath(name string) string {
	if a, err := filepath.Abs(name); err == nil {
		return a
	}
	return name
}
