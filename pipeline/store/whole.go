package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// partial ends the name of a copy that is not whole yet, before what makes it unique.
const partial = ".partial-"

// whole makes dir, which must be empty or missing, what made makes of another directory:
// all of it or, after an error or a crash, nothing.
func whole(f vfs.FS, dir string, made func(to string) error) error {
	if err := vacant(f, dir); err != nil {
		return err
	}
	parent, base := f.PathDir(dir), f.PathBase(dir)
	if err := f.MkdirAll(parent, 0o750); err != nil {
		return copyError(dir, err)
	}
	if err := sweep(f, parent, base+partial); err != nil {
		return copyError(dir, err)
	}
	to := f.PathJoin(parent, base+partial+rand.Text())
	err := made(to)
	if err == nil {
		err = replace(f, to, dir)
	}
	if err != nil {
		return copyError(dir, errors.Join(err, f.RemoveAll(to)))
	}
	return nil
}

// vacant says what is wrong with dir as the place of a copy.
func vacant(f vfs.FS, dir string) error {
	info, err := f.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return copyError(dir, err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file: name a directory that is empty or does not exist yet", dir)
	}
	names, err := f.List(dir)
	if err != nil {
		return copyError(dir, err)
	}
	if len(names) > 0 {
		return fmt.Errorf("%s is not empty: name a directory that is empty or does not exist yet", dir)
	}
	return nil
}

// sweep removes what an interrupted copy left in dir: all whose names begin with prefix.
func sweep(f vfs.FS, dir, prefix string) error {
	names, err := f.List(dir)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			err = errors.Join(err, f.RemoveAll(f.PathJoin(dir, n)))
		}
	}
	return err
}

// replace makes from, which is whole and on disk, the directory dir.
func replace(f vfs.FS, from, dir string) error {
	if err := f.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.Rename(from, dir); err != nil {
		return err
	}
	return syncDir(f, f.PathDir(dir))
}

// mark says durably that the copy in dir is whole.
func mark(f vfs.FS, dir string) error {
	file, err := f.Create(f.PathJoin(dir, copyMark), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return syncDir(f, dir)
}

func syncDir(f vfs.FS, dir string) error {
	file, err := f.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
