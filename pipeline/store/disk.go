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

// disk is the file system of a store's directory, whose full disk is waited for. What is
// written elsewhere, a backup, fails at once instead: that disk need not be the same.
type disk struct {
	vfs.FS
	plain vfs.FS
	dir   string
	// fatal, which does not return, is called when the log cannot be gone on with. It is nil
	// while the store is opened.
	fatal atomic.Pointer[func(error)]
}

func newDisk(plain vfs.FS, dir string, full func()) *disk {
	return &disk{FS: vfs.OnDiskFull(plain, full), plain: plain, dir: dir}
}

// of is what files are to be made with.
func (d *disk) of(name string) vfs.FS {
	if within(name, d.dir) {
		return d.FS
	}
	return d.plain
}

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.of(name).Create(name, c)
	d.check(name, err)
	return f, err
}

func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.of(newname).ReuseForWrite(oldname, newname, c)
	d.check(newname, err)
	return f, err
}

// check ends the process where a new log could not be made: Pebble would panic.
func (d *disk) check(name string, err error) {
	if err == nil || filepath.Ext(name) != ".log" || filepath.Dir(absolute(name)) != absolute(d.dir) {
		return
	}
	if fatal := d.fatal.Load(); fatal != nil {
		(*fatal)(err)
	}
}

func (d *disk) Link(oldname, newname string) error { return d.of(newname).Link(oldname, newname) }

func (d *disk) MkdirAll(dir string, perm os.FileMode) error { return d.of(dir).MkdirAll(dir, perm) }

// complete says what is missing in a directory that has a part of a store: Pebble would
// make a new one there.
func (d *disk) complete() error {
	if d == nil || d.holds("marker.manifest.") || !d.holds(".sst") && !d.holds(".log") && !d.holds("marker.format-version.") {
		return nil
	}
	return damageError(d.dir, "", errors.New("its file marker.manifest.* is missing"))
}

// holds reports whether the directory has a file whose name begins or ends with part.
func (d *disk) holds(part string) bool {
	if d == nil {
		return false
	}
	names, _ := d.List(d.dir) // a directory that cannot be read is for Pebble to tell
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, part) || strings.HasSuffix(n, part)
	})
}

// within reports whether name is dir or in it.
func within(name, dir string) bool {
	rel, err := filepath.Rel(absolute(dir), absolute(name))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved is the absolute form of name, without symbolic links as far as it exists.
func resolved(name string) string {
	name = absolute(name)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	parent := filepath.Dir(name)
	if parent == name {
		return name
	}
	return filepath.Join(resolved(parent), filepath.Base(name))
}

// absolute is the absolute form of name, or name where the working directory is not known.
func absolute(name string) string {
	if a, err := filepath.Abs(name); err == nil {
		return a
	}
	return name
}
