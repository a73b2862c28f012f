package store

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// matchingFiles returns the files of a pattern in the data directory.
func matchingFiles(t *testing.T, fs vfs.FS, pattern string) (found []string) {
	t.Helper()
	for n := range readAllFiles(t, fs) {
		if ok, err := filepath.Match("/data/"+pattern, n); err != nil {
			t.Fatal(err)
		} else if ok {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return found
}

// lastFile returns the last file of a pattern in the data directory.
func lastFile(t *testing.T, fs vfs.FS, pattern string) string {
	return slices.Max(matchingFiles(t, fs, pattern))
}

// rewriteFile replaces the contents of a file.
func rewriteFile(t *testing.T, fs vfs.FS, name string, f func([]byte) []byte) {
	t.Helper()
	b := readFile(t, fs, name)
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(f(b)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, file)
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	file, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// overwriteAt overwrites 16 bytes at a part of the file.
func overwriteAt(part float64) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[int(float64(len(b))*part):], bytes.Repeat([]byte{0xa5}, 16))
		return b
	}
}

// TestDamage: the error of Open, or of the first read, names what is damaged and says what to do. Nothing is
// written over the damage. A start writes the log into a new table only if the damage is within a table, which loses
// nothing.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		f     func([]byte) []byte // nil: the file is gone
		want  string
		moved bool
	}{
		"table":            {"*.sst", overwriteAt(0.2), ".sst: ", true},
		"table's index":    {"*.sst", overwriteAt(0.99), "pebble: ", true},
		"table gone":       {"*.sst", nil, "file does not exist", false},
		"table cut":        {"*.sst", func(b []byte) []byte { return b[:len(b)-1] }, "object size mismatch", false},
		"table longer":     {"*.sst", func(b []byte) []byte { return append(b, 0) }, "object size mismatch", false},
		"manifest":         {"MANIFEST-*", overwriteAt(0.1), "malformed manifest", false},
		"manifest gone":    {"MANIFEST-*", nil, "MANIFEST-", false},
		"marker gone":      {"marker.manifest.*", nil, "its file marker.manifest.* is missing", false},
		"format gone":      {"marker.format-version.*", nil, "its file marker.format-version.* is missing", false},
		"within the log":   {"*.log", overwriteAt(0.5), "replaying WAL", false},
		"log's first page": {"*.log", overwriteAt(0.001), "replaying WAL", false},
	} {
		mem := newFilledFS(t)
		file := lastFile(t, mem, c.file)
		whole := readFile(t, mem, file)
		if c.f == nil {
			if err := mem.Remove(file); err != nil {
				t.Fatal(err)
			}
		} else {
			rewriteFile(t, mem, file, c.f)
		}
		before := readAllFiles(t, mem)
		for range 3 {
			log, err := openDamaged(t, mem)
			for _, want := range []string{"the store in /data is damaged (", c.want, "): restore a backup, and keep this directory"} {
				if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(log+err.Error(), want) {
					t.Errorf("%s: %v, want %q\n%s", name, err, want, log)
				}
			}
		}
		if got := !maps.Equal(readAllFiles(t, mem), before); got != c.moved {
			t.Errorf("%s: changed %v, want %v", name, got, c.moved)
		}
		if c.moved { // repaired, it has everything
			rewriteFile(t, mem, file, func([]byte) []byte { return whole })
			if n := countEntries(t, open(t, Options{Dir: "/data", FS: mem})); n != 100 {
				t.Errorf("%s: repaired it has %d entries, want 100", name, n)
			}
		}
	}
}

// warnLogger is a logger to w.
func warnLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// openDamaged returns what a store logs, and why it cannot be opened or read.
func openDamaged(t *testing.T, fs vfs.FS) (log string, err error) {
	t.Helper()
	var out bytes.Buffer
	d, err := Open(Options{Dir: "/data", FS: fs, Logger: warnLogger(&out)})
	if err == nil {
		_, err = d.ReadLog("t", 0, 0, 1000, 1<<20)
		wantBroken(t, "a read", err)
		mustClose(t, d)
	}
	return out.String(), err
}

// TestOnlyTheFormatIsLeft: no store is made where one was.
func TestOnlyTheFormatIsLeft(t *testing.T) {
	mem := newFilledFS(t)
	for _, pattern := range []string{"*.sst", "*.log", "OPTIONS-*", "MANIFEST-*", "marker.manifest.*"} {
		for _, n := range matchingFiles(t, mem, pattern) {
			if err := mem.Remove(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := Open(Options{Dir: "/data", FS: mem})
	wantErrorText(t, "Open", err, "marker.manifest.* is missing")
}

// readAllFiles returns the contents of the data directory's files by name.
func readAllFiles(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	names, err := fs.List("/data")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, n := range names {
		all["/data/"+n] = string(readFile(t, fs, "/data/"+n))
	}
	return all
}

// TestDamageIsReported checks that current and later users of a damaged store are called.
func TestDamageIsReported(t *testing.T) {
	mem := newFilledFS(t)
	rewriteFile(t, mem, lastFile(t, mem, "*.sst"), overwriteAt(0.2))
	d := open(t, Options{Dir: "/data", FS: mem})
	first, second := make(chan error, 100), make(chan error, 100)
	leave := enter(t, d, User{Broken: func(err error) { first <- err }})
	if _, err := d.ReadLog("t", 0, 0, 1000, 1<<20); err == nil {
		t.Error("a damaged log was read")
	}
	leave()
	enter(t, d, User{Broken: func(err error) { second <- err }})
	wantBroken(t, "the first", <-first, ".sst: ")
	wantBroken(t, "the second", <-second, ".sst: ")
}

// TestTornLog: what a power cut leaves at the end of the log is normal. What was durable
// before it is there.
func TestTornLog(t *testing.T) {
	for name, f := range map[string]func([]byte) []byte{
		"cut":    func(b []byte) []byte { return b[:len(b)*9/10] },
		"zeroed": func(b []byte) []byte { clear(b[len(b)*9/10:]); return b },
		"padded": func(b []byte) []byte { return append(b, make([]byte, 10_000)...) },
	} {
		mem := newFilledFS(t)
		rewriteFile(t, mem, lastFile(t, mem, "*.log"), f)
		var log bytes.Buffer
		d := open(t, Options{Dir: "/data", FS: mem, Logger: warnLogger(&log)})
		n := countEntries(t, d)
		if least := uint64(90); n < least || (name == "padded" && n != 100) {
			t.Errorf("%s: %d entries, want at least %d", name, n, least)
		}
		if log.Len() > 0 {
			t.Errorf("%s: it says\n%s", name, log.String())
		}
	}
}

// TestRepeatedErrors: what Pebble says hundreds of times a second is logged every ten.
func TestRepeatedErrors(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), "/d", nil)
	now := time.Now()
	l.now = func() time.Time { return now }
	for i := range 10_000 { // 20 s
		l.Errorf("background error: write %06d.sst: no space left", i)
		now = now.Add(2 * time.Millisecond)
	}
	l.Errorf("something else")
	l.Errorf("background error: write %06d.sst: no space left", 1)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"000000.sst", "repeated=4999", "something else", "repeated=4999"} {
		if len(lines) != 4 || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d has no %q:\n%s", i, want, out.String())
		}
	}
	if strings.Contains(lines[0], "repeated") {
		t.Errorf("the first one did not come before: %s", lines[0])
	}
	for i := range 2 * maxSeenErrors {
		l.Errorf("error %s", strings.Repeat("x", i))
	}
	if len(l.seen) > maxSeenErrors {
		t.Errorf("%d errors are remembered", len(l.seen))
	}
}
