package inflight

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openLog(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.file.Close() })
	return l
}

// simulateDeath begins to handle keys and never ends it, as a process does that dies meanwhile.
func simulateDeath(l *Log, keys ...Key) {
	for _, k := range keys {
		l.recordBegin(k)
	}
}

func TestDeathsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inflight")
	bad, good, later := KeyOf("g", "bad"), KeyOf("g", "good"), KeyOf("g", "later")
	for want := range 3 {
		l := openLog(t, path)
		if n := l.Deaths(bad); n != want {
			t.Errorf("got %d deaths, want %d", n, want)
		}
		if err := l.Handle(t.Context(), good, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if want == 0 {
			simulateDeath(l, later, good)
		}
		simulateDeath(l, bad)
	}
	l := openLog(t, path)
	if l.Deaths(bad) != 3 || l.Deaths(good) > 1 || l.Deaths(later) != 1 {
		t.Errorf("got %d, %d and %d deaths", l.Deaths(bad), l.Deaths(good), l.Deaths(later))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, path)
	if l.Deaths(bad) != 3 || l.Deaths(later) != 1 {
		t.Error("an end in order forgets what was not handled since")
	}
	for _, k := range []Key{bad, good, later} {
		l.Forget(k)
	}
	if len(l.entries) != 0 || l.hasDeaths.Load() {
		t.Error("something is left")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestEndedMessagesAreNotSuspected more than once: their end is written when another one begins,
// or when one ends that was a suspect.
func TestEndedMessagesAreNotSuspected(t *testing.T) {
	path, k := filepath.Join(t.TempDir(), "inflight"), KeyOf("k")
	for range 5 {
		l := openLog(t, path)
		if n := l.Deaths(k); n > 1 {
			t.Fatalf("got %d deaths, and it never failed", n)
		}
		for range 2 {
			if err := l.Handle(t.Context(), k, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := openLog(t, path)
	simulateDeath(l, KeyOf("bad"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l = openLog(t, path); l.Deaths(KeyOf("bad")) != 1 || l.Deaths(k) != 1 {
		t.Errorf("got %d and %d deaths", l.Deaths(KeyOf("bad")), l.Deaths(k))
	}
}

// TestFailuresForgetNoDeath: a handler that fails before it comes to what it dies of.
func TestFailuresForgetNoDeath(t *testing.T) {
	path, k, later := filepath.Join(t.TempDir(), "inflight"), KeyOf("k"), errors.New("not yet")
	simulateDeath(openLog(t, path), k)
	l := openLog(t, path)
	if err := l.Handle(t.Context(), k, func() error { return later }); !errors.Is(err, later) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = l.Handle(t.Context(), k, func() error { panic("no") })
	}()
	if n := l.Deaths(k); n != 1 {
		t.Errorf("got %d deaths, want 1", n)
	}
	simulateDeath(l, k)
	if n := openLog(t, path).Deaths(k); n != 2 {
		t.Errorf("got %d deaths, want 2", n)
	}
}

func TestSuspectsAreHandledAlone(t *testing.T) {
	path, bad, good := filepath.Join(t.TempDir(), "inflight"), KeyOf("bad"), KeyOf("good")
	simulateDeath(openLog(t, path), bad)
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		release, began, alone := make(chan struct{}), make(chan string, 3), errors.New("it stays a suspect")
		handle := func(name string, k Key, err error) {
			_ = l.Handle(t.Context(), k, func() error { began <- name; <-release; return err })
		}
		go handle("bad", bad, alone)
		synctest.Wait()
		go handle("good", good, nil)
		go handle("posted", Key{}, nil)
		synctest.Wait()
		if n := len(began); n != 1 || <-began != "bad" {
			t.Errorf("%d messages are handled, want the one during which the process died", n)
		}
		release <- struct{}{}
		synctest.Wait()
		if len(began) != 2 {
			t.Errorf("%d messages are handled, want the others", len(began))
		}
		// One that waits for another must not do so for ever.
		start := time.Now()
		go handle("bad", bad, nil)
		synctest.Wait()
		time.Sleep(turnTimeout)
		synctest.Wait()
		if len(began) != 3 || time.Since(start) > turnTimeout {
			t.Errorf("%d messages are handled after %v", len(began), time.Since(start))
		}
		close(release)
		synctest.Wait()
		if l.hasDeaths.Load() {
			t.Error("one that ended well is a suspect still")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Handle(ctx, good, func() error { return nil }); err != nil {
			t.Errorf("without suspects: %v", err)
		}
	})
}

func TestStrangeFiles(t *testing.T) {
	k := KeyOf("k")
	for name, b := range map[string][]byte{
		"empty": {}, "another": []byte("127.0.0.1:9000\n"), "cut off": append(magic[:], entry{key: k, inProgress: true}.encode()[:20]...),
		"an unknown state": append(append(magic[:], make([]byte, 16)...), append([]byte{7}, make([]byte, 15)...)...),
	} {
		path := filepath.Join(t.TempDir(), "inflight")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := len(openLog(t, path).entries); n != 0 {
			t.Errorf("%s: got %d suspects", name, n)
		}
	}
}

// TestWhatNeverComesAgainIsForgotten: it was committed just before the process died.
func TestWhatNeverComesAgainIsForgotten(t *testing.T) {
	path, k := filepath.Join(t.TempDir(), "inflight"), KeyOf("k")
	simulateDeath(openLog(t, path), k)
	for range maxStarts + 1 {
		if openLog(t, path).Deaths(k) != 1 {
			t.Fatal("it is forgotten early")
		}
	}
	if len(openLog(t, path).entries) != 0 {
		t.Error("it is remembered for ever")
	}
}

// TestHandlingGoesOnWithoutTheFile, and says so once.
func TestHandlingGoesOnWithoutTheFile(t *testing.T) {
	var log bytes.Buffer
	l, err := Open(filepath.Join(t.TempDir(), "inflight"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range 3 {
		if err := l.Handle(t.Context(), KeyOf("k"), func() error { n++; return nil }); err != nil {
			t.Error(err)
		}
	}
	if n != 3 || strings.Count(log.String(), "the messages in flight cannot be recorded") != 1 {
		t.Errorf("%d were handled, log %s", n, &log)
	}
}
