package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/vokter/vokter/pipeline"
)

// prepare makes the directory dir and makes sure that files can be made in it.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return openError(dir, err)
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return openError(dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ErrInUse says that somebody has the directory of a store open.
var ErrInUse = errors.New("in use")

// openError says what to do about err.
func openError(dir string, err error) error {
	text := err.Error()
	class, _ := pipeline.ClassOf(err)
	switch {
	case class == pipeline.ClassBroken:
		return err // it says what to do
	case strings.Contains(text, "resource temporarily unavailable"):
		return fmt.Errorf("%s is %w by another process: stop that one, or use another directory", dir, ErrInUse)
	case strings.Contains(text, "lock held by current process"):
		return fmt.Errorf("%s is %w by this process: open it once and share it", dir, ErrInUse)
	case dir == "":
		return fmt.Errorf("opening a store in memory: %w", err)
	case pebble.IsCorruptionError(err), strings.Contains(text, "object size mismatch"):
		return damageError(dir, "", err)
	case errors.Is(err, pebble.ErrDBNotPristine):
		return damageError(dir, "", errors.New("its file marker.format-version.* is missing"))
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // its path is a part of dir, or a file with a random name
	}
	return fmt.Errorf("the data directory %s cannot be used: %w; %s", dir, err, remedy(err))
}

// copyError says what to do about err, which came while a copy was made in dir.
func copyError(dir string, err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	return fmt.Errorf("copying into %s failed: %w; %s", dir, errno, remedy(errno))
}

// remedy is what helps against err, which a directory to be written to gave.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "its file system can only be read; use a directory on another"
	case errors.Is(err, fs.ErrPermission):
		return "give this user the right to write there, or use another directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on that disk, or use a directory on another"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "somebody else uses that directory; use another"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return "a part of this path is a file; use another directory"
	case errors.Is(err, fs.ErrNotExist):
		return "no directory can be made there; use another"
	}
	return "use another directory, on a local disk"
}
