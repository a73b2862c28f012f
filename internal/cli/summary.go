package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vokter/vokter/inspect"
)

// checkSummary says, before anything is done, why the summary could not be written to path.
func checkSummary(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // opening a pipe would wait for its reader
	case err == nil && !replaceable(path):
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return notWritable(path, err)
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return notWritable(path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func writeSummary(path string, s inspect.Summary) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("--summary: %w", notWritable(path, err))
	}
	return nil
}

// notWritable names the file as the user did, not the temporary one beside it.
func notWritable(path string, err error) error {
	why := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		why = pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		why = le.Err
	}
	return fmt.Errorf("%s cannot be written to: %w", path, why)
}

// writeFile replaces the file at path at once, so that nobody reads half of it. What is
// no plain file (/dev/stdout) is written to as it is.
func writeFile(path string, b []byte) error {
	if !replaceable(path) {
		return writeInto(path, b)
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// replaceable reports whether path is a plain file or nothing yet. A symbolic link is
// neither: /dev/stdout is one.
func replaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// writeInto writes to what is there. What the system's names such as /dev/stdout stand for
// may have been written to before, and keeps that.
func writeInto(path string, b []byte) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if strings.HasPrefix(path, "/dev/") {
		flags = os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func temporary(path string) string { return "." + filepath.Base(path) + "-*" }
