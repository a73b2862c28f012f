package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenErrorTexts(t *testing.T) {
	path := func(err error) error { return &fs.PathError{Op: "mkdir", Path: "/d/part", Err: err} }
	const right = "give this user the right"
	for _, c := range []struct {
		err  error
		want string
	}{
		{os.NewSyscallError("fcntl", errors.New("resource temporarily unavailable")), "/d is in use by another process"},
		{errors.New("lock held by current process"), "/d is in use by this process"},
		{path(syscall.EACCES), right},
		{path(syscall.EPERM), right},
		{path(syscall.EROFS), "can only be read"},
		{path(syscall.ENOSPC), "make room"},
		{path(syscall.ENOTDIR), "is a file"},
		{path(syscall.ENOENT), "no directory can be made there"},
		{path(syscall.EIO), "on a local disk"},
	} {
		got := openError("/d", c.err).Error()
		if !strings.Contains(got, c.want) || strings.Contains(got, "part:") {
			t.Errorf("%v became %q, want %q in it", c.err, got, c.want)
		}
		if strings.Contains(got, right) != (c.want == right) {
			t.Errorf("%v became %q: a right would not help", c.err, got)
		}
	}
}

func TestOpenInWrongPlaces(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		plain:                     "a part of this path is a file",
		filepath.Join(plain, "d"): "a part of this path is a file",
	} {
		if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(plain), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
