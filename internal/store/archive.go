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

var errTruncated = errors.New("the archive ends too early: fetch it again")

// notABackup returns the error that an archive is not a backup, with a reason.
func notABackup(format string, args ...any) error {
	return fmt.Errorf("this is no backup of a store: "+format, args...)
}

// pack writes the files of dir to w, and copyMarker after them.
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
	if err := out.WriteHeader(&tar.Header{Name: copyMarker, Typeflag: tar.TypeReg, Mode: 0o640}); err != nil {
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
	return createAtomically(vfs.Default, absolutePath(dir), func(to string) error {
		if err := os.Mkdir(to, 0o750); err != nil {
			return err
		}
		if err := unpack(tar.NewReader(r), to); err != nil {
			return err
		}
		if err := checkIsStore(to); err != nil {
			return err
		}
		if err := verify(vfs.Default, to); err != nil {
			return err
		}
		return markComplete(vfs.Default, to)
	})
}

// unpack writes the files before copyMarker to dir.
func unpack(in *tar.Reader, dir string) error {
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errTruncated // a complete archive has the marker before its end
		case err != nil:
			return notABackup("%w", err)
		case !isPlainFile(h):
			return notABackup("it holds %q", h.Name)
		case h.Name == copyMarker && h.Size > 0:
			return notABackup("its %s has %d bytes", h.Name, h.Size)
		case h.Name == copyMarker:
			return nil
		}
		if err := unpackFile(in, filepath.Join(dir, h.Name)); err != nil {
			return err
		}
	}
}

// checkIsStore returns an error if dir lacks a part of a store: a manifest, the marker that names
// it, or a log.
func checkIsStore(dir string) error {
	for _, pattern := range []string{"MANIFEST-*", "marker.manifest.*", "*.log"} {
		if found, _ := fs.Glob(os.DirFS(dir), pattern); len(found) == 0 {
			return notABackup("it holds no %s", pattern)
		}
	}
	return nil
}

// isPlainFile reports whether h is a regular file directly in the archive, with the size that its
// header says.
func isPlainFile(h *tar.Header) bool {
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
		return notABackup("it holds %q twice", filepath.Base(name))
	}
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, in); errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTruncated
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// partialInfix is a part of the name of an incomplete copy. A unique part follows it.
const partialInfix = ".partial-"

// createAtomically creates dir atomically: it calls made with a temporary directory, and renames that to
// dir. Dir must be empty or missing, and still is after an error or a crash.
func createAtomically(f vfs.FS, dir string, made func(to string) error) error {
	if err := checkVacant(f, dir); err != nil {
		return err
	}
	parent, base := f.PathDir(dir), f.PathBase(dir)
	if err := f.MkdirAll(parent, 0o750); err != nil {
		return copyError(dir, err)
	}
	if err := removeLeftovers(f, parent, base+partialInfix); err != nil {
		return copyError(dir, err)
	}
	to := f.PathJoin(parent, base+partialInfix+rand.Text())
	err := made(to)
	if err == nil {
		err = renameDurably(f, to, dir)
	}
	if err != nil {
		return copyError(dir, errors.Join(err, f.RemoveAll(to)))
	}
	return nil
}

// checkVacant returns an error if dir cannot become a copy, for example because it is not empty.
func checkVacant(f vfs.FS, dir string) error {
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

// removeLeftovers removes the remains of interrupted copies in dir: files whose names begin with prefix.
func removeLeftovers(f vfs.FS, dir, prefix string) error {
	names, err := f.List(dir)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			err = errors.Join(err, f.RemoveAll(f.PathJoin(dir, n)))
		}
	}
	return err
}

// renameDurably renames from, which is complete and durable, to dir.
func renameDurably(f vfs.FS, from, dir string) error {
	if err := f.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.Rename(from, dir); err != nil {
		return err
	}
	return syncDir(f, f.PathDir(dir))
}

// markComplete durably marks the copy in dir as complete.
func markComplete(f vfs.FS, dir string) error {
	file, err := f.Create(f.PathJoin(dir, copyMarker), vfs.WriteCategoryUnspecified)
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
