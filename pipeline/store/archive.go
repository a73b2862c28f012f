package store

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errCut = errors.New("the archive ends too early: fetch it again")

// noBackup returns the error that an archive is not a backup, with a reason.
func noBackup(format string, args ...any) error {
	return fmt.Errorf("this is no backup of a store: "+format, args...)
}

// pack writes the files of dir to w, and the mark after them.
func pack(f vfs.FS, dir string, w io.Writer) error {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	out := tar.NewWriter(w)
	for _, n := range names {
		if err := packFile(f, dir, n, out); err != nil {
			return err
		}
	}
	if err := out.WriteHeader(&tar.Header{Name: copyMark, Typeflag: tar.TypeReg, Mode: 0o640}); err != nil {
		return err
	}
	return out.Close()
}

func packFile(f vfs.FS, dir, name string, out *tar.Writer) error {
	file, err := f.Open(f.PathJoin(dir, name), vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o640, Size: info.Size(), ModTime: info.ModTime()}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}

// Unpack unpacks a copy of a store that BackupTo wrote into dir. Dir must be empty or missing,
// and still is after an error or a crash. A truncated archive is always an error. Errors say
// what to do.
func Unpack(r io.Reader, dir string) error {
	return whole(vfs.Default, absolute(dir), func(to string) error {
		if err := os.Mkdir(to, 0o750); err != nil {
			return err
		}
		if err := unpack(tar.NewReader(r), to); err != nil {
			return err
		}
		if err := isStore(to); err != nil {
			return err
		}
		if err := verify(vfs.Default, to); err != nil {
			return err
		}
		return mark(vfs.Default, to)
	})
}

// unpack writes the files before the mark to dir.
func unpack(in *tar.Reader, dir string) error {
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errCut // a complete archive has the mark before its end
		case err != nil:
			return noBackup("%w", err)
		case !plain(h):
			return noBackup("it holds %q", h.Name)
		case h.Name == copyMark && h.Size > 0:
			return noBackup("its %s has %d bytes", h.Name, h.Size)
		case h.Name == copyMark:
			return nil
		}
		if err := unpackFile(in, filepath.Join(dir, h.Name)); err != nil {
			return err
		}
	}
}

// isStore returns an error if dir lacks a part of a store: a manifest, the marker that names
// it, or a log.
func isStore(dir string) error {
	for _, pattern := range []string{"MANIFEST-*", "marker.manifest.*", "*.log"} {
		if found, _ := fs.Glob(os.DirFS(dir), pattern); len(found) == 0 {
			return noBackup("it holds no %s", pattern)
		}
	}
	return nil
}

// plain reports whether h is a regular file directly in the archive, with the size that its
// header says.
func plain(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return false
		}
	}
	return h.Typeflag == tar.TypeReg && filepath.IsLocal(h.Name) && filepath.Base(h.Name) == h.Name && h.Name != "."
}

func unpackFile(in io.Reader, name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return noBackup("it holds %q twice", filepath.Base(name))
	}
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, in); errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCut
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// partial is a part of the name of an incomplete copy. A unique part follows it.
const partial = ".partial-"

// whole creates dir atomically: it calls made with a temporary directory, which then becomes
// dir. Dir must be empty or missing, and still is after an error or a crash.
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

// vacant returns an error if dir cannot become a copy, for example because it is not empty.
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

// sweep removes the remains of interrupted copies in dir: files whose names begin with prefix.
func sweep(f vfs.FS, dir, prefix string) error {
	names, err := f.List(dir)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			err = errors.Join(err, f.RemoveAll(f.PathJoin(dir, n)))
		}
	}
	return err
}

// replace renames from, which is complete and durable, to dir.
func replace(f vfs.FS, from, dir string) error {
	if err := f.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.Rename(from, dir); err != nil {
		return err
	}
	return syncDir(f, f.PathDir(dir))
}

// mark durably marks the copy in dir as complete.
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
