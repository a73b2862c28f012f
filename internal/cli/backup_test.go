package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBackupBeside: a copy has the receivers that were made on the web page, and the token.
func TestBackupBeside(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.check(t, "<p>one</p>")
	beside := map[string]string{"receivers.yaml": "sinks: {}\n", "token": "T\n"}
	for name, text := range beside {
		if err := os.WriteFile(filepath.Join(s.data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "copy")
	expectExit(t, 0, "is a copy of", "backup", dir, "--data", s.data)
	for name, want := range beside {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if info, statErr := os.Stat(filepath.Join(dir, name)); err != nil || statErr != nil || string(got) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v", name, got, errors.Join(err, statErr))
		}
	}
}

// TestBackupInside: a copy within the data directory is refused, however it is named, for
// a stopped process and a running one.
func TestBackupInside(t *testing.T) {
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>one</p>")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.data, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(s.data))
	relative := filepath.Base(s.data)
	all := func() {
		t.Helper()
		for _, args := range [][]string{
			{filepath.Join(s.data, "in"), s.data}, {filepath.Join(s.data, "a", "b"), s.data},
			{filepath.Join(relative, "in"), s.data}, {filepath.Join(s.data, "in"), relative}, {filepath.Join(relative, "in"), relative},
			{filepath.Join(link, "in"), s.data}, {filepath.Join(s.data, "in"), link}, {filepath.Join(link, "a", "b"), relative},
		} {
			expectExit(t, 2, "no backup was made: "+args[0]+" and the data directory "+args[1]+" are one in the other; name another directory",
				"backup", args[0], "--data", args[1])
		}
	}
	all()
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	all()
	for _, dir := range []string{s.data + "-2", filepath.Join(t.TempDir(), "a", "b")} { // beside it
		expectExit(t, 0, "is a copy of", "backup", dir, "--data", s.data)
	}
	run.stop()
	<-run.ended
}

// failingBackup makes backups that are part, and then fail.
type failingBackup struct {
	part string
	err  error
}

func (s *failingBackup) Backup(_ context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, s.part); err != nil {
		return fmt.Errorf("the copy broke off: %w", err)
	}
	return s.err
}

// TestFailedCopy: the error is the first one, and no file of the copy stays.
func TestFailedCopy(t *testing.T) {
	top := t.TempDir()
	busy := errors.New("another backup is being made")
	cut := fmt.Errorf("the copy broke off: %w", syscall.ECONNRESET)
	for name, c := range map[string]struct {
		m    failingBackup
		want string
	}{
		"refused":   {failingBackup{err: busy}, busy.Error()},
		"broke off": {failingBackup{part: "half", err: cut}, cut.Error()},
		"no tar":    {failingBackup{part: strings.Repeat("no archive ", 1000)}, "no backup was made: this is no backup of a store: archive/tar: invalid tar header"},
	} {
		if err := copyStore(t.Context(), c.m.Backup, filepath.Join(top, "b")); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(top); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestVerbsOfADamagedDirectory: the verbs say of an incomplete store that it is damaged, not that nothing was ever
// watched there.
func TestVerbsOfADamagedDirectory(t *testing.T) {
	for _, gone := range []string{"MANIFEST-*", "marker.format-version.*"} {
		s := newTestSetup(t, "")
		s.check(t, "<p>one</p>")
		names, err := filepath.Glob(filepath.Join(s.data, gone))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, n := range names {
			if err := os.Remove(n); err != nil {
				t.Fatal(err)
			}
		}
		expectExit(t, 1, "is damaged (", "list", "--data", s.data)
		expectExit(t, 1, "restore a backup", "backup", filepath.Join(t.TempDir(), "b"), "--data", s.data)
	}
	for name, want := range map[string]bool{
		"MANIFEST-000001": true, "marker.manifest.000001.MANIFEST-000001": true, "000004.sst": true, "000004.log": true,
		"syslog.log": false, "notes.txt": false, "listen": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkDirectory(dir); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "nothing was ever watched there") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
