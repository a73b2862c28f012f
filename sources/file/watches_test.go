package filesource

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// changeReports collects for which pages Notify was called.
type changeReports struct {
	mu   sync.Mutex
	cond *sync.Cond
	all  map[string]int
}

// wait waits until there are more than n reports of the page at path, and returns how many.
func (r *changeReports) wait(path string, n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.all[URL(path)] <= n {
		r.cond.Wait()
	}
	return r.all[URL(path)]
}

// startNotify starts Notify and returns when the system reports changes.
func startNotify(t *testing.T, f *Fetcher, dir string) *changeReports {
	t.Helper()
	r := &changeReports{all: make(map[string]int)}
	r.cond = sync.NewCond(&r.mu)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	first := filepath.Join(dir, "first")
	writeFile(t, first, "")
	if _, _, err := fetch(t, f, first, ""); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	go func() {
		ended <- f.Notify(ctx, func(_ context.Context, page string) bool {
			begin()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all[page]++
			r.cond.Broadcast()
			return true
		})
	}()
	for on := false; !on; {
		writeFile(t, first, "x")
		select {
		case <-began:
			on = true
		case <-time.After(time.Millisecond):
		}
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestNotify(t *testing.T) {
	dir := t.TempDir()
	f := New(Config{Allow: []string{dir}})
	r := startNotify(t, f, dir)
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	watch := func(path string) {
		t.Helper()
		_, _, _ = fetch(t, f, path, "") // which may not exist yet
	}
	writeFile(t, at("a", "file"), "one")
	watch(at("a", "file"))
	must(os.WriteFile(at("a", "file"), []byte("two"), 0o644))
	n := r.wait(at("a", "file"), 0)

	writeFile(t, at("a", "new"), "three")
	must(os.Rename(at("a", "new"), at("a", "file"))) // as editors do
	n = r.wait(at("a", "file"), n)

	must(os.Remove(at("a", "file")))
	n = r.wait(at("a", "file"), n)
	writeFile(t, at("a", "file"), "four")
	r.wait(at("a", "file"), n)

	must(os.Mkdir(at("b"), 0o755))
	watch(at("b", "later"))
	writeFile(t, at("b", "later"), "it came")
	r.wait(at("b", "later"), 0)

	// A volume of Kubernetes: name -> ..data/name, ..data -> ..1.
	writeFile(t, at("c", "..1", "name"), "one")
	writeFile(t, at("c", "..2", "name"), "two")
	must(os.Symlink("..1", at("c", "..data")))
	must(os.Symlink("..data/name", at("c", "name")))
	watch(at("c", "name"))
	must(os.WriteFile(at("c", "..1", "name"), []byte("changed"), 0o644))
	n = r.wait(at("c", "name"), 0)
	must(os.Symlink("..2", at("c", "..new")))
	must(os.Rename(at("c", "..new"), at("c", "..data")))
	r.wait(at("c", "name"), n)

	writeFile(t, at("d", "sub", "one"), "one")
	watch(at("d"))
	writeFile(t, at("d", "sub", "two"), "two")
	n = r.wait(at("d"), 0)
	must(os.Remove(at("d", "sub", "one")))
	r.wait(at("d"), n)
}

// TestForgotten has the pages of a folder forgotten, and looks at what is still watched.
func TestForgotten(t *testing.T) {
	dir := t.TempDir()
	w := newWatches(slog.New(slog.DiscardHandler))
	a, b := []watchedName{{dir, "a"}}, []watchedName{{dir, "b"}, {dir, anyName}}
	w.set("a", a)
	w.set("b", b)
	w.set("b", b)
	w.set("b", b[:1])
	if got := w.pagesByName[watchedName{dir, anyName}]; len(got) > 0 || w.folderUses[dir] != 2 {
		t.Errorf("got %v, %v", got, w.folderUses)
	}
	w.set("b", nil)
	if _, ended := w.setWithoutSystem("a", nil); !slices.Equal(ended, []string{dir}) {
		t.Errorf("ended %v, want %s", ended, dir)
	}
	if len(w.namesByPage)+len(w.pagesByName)+len(w.folderUses) > 0 {
		t.Errorf("left: %v, %v, %v", w.namesByPage, w.pagesByName, w.folderUses)
	}
}

func TestALimitIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	w := newWatches(slog.New(slog.NewTextHandler(&log, nil)))
	w.warnOnce("/srv/a", &os.PathError{Op: "inotify_add_watch", Path: "/srv/a", Err: syscall.ENOSPC})
	w.warnOnce("/srv/b", syscall.ENOSPC)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "max_user_watches") || !strings.Contains(got, "/srv/a") {
		t.Errorf("got %s", got)
	}
}

func TestBursts(t *testing.T) {
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	bs := make(bursts)
	if _, ok := bs.nextReport(); ok {
		t.Error("something is due before anything changed")
	}
	bs.add([]string{"once"}, after(0))
	for ms := 0; ms <= 2000; ms += 50 {
		bs.add([]string{"log"}, after(ms)) // is written all the time
		got := bs.due(after(ms))
		var want []string
		switch ms {
		case 100:
			want = []string{"once"}
		case 1000:
			want = []string{"log"}
		}
		if ms == 2000 && len(got) == 0 { // the second burst began at 1050
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d ms: due are %v, want %v", ms, got, want)
		}
	}
	if at, ok := bs.nextReport(); !ok || !at.Equal(after(2050)) {
		t.Errorf("next is %v, %v, want the end of the second burst", at.Sub(start), ok)
	}
}
