package store

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/failure"
)

func open(t *testing.T, o Options) *DB {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, d) })
	return d
}

// mustClose closes c, which must not fail.
func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// enter makes u the user of d until the test ends.
func enter(t *testing.T, d *DB, u User) (leave func()) {
	t.Helper()
	leave, err := d.Enter(u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	return leave
}

// commit commits what f writes, durably.
func commit(t *testing.T, d *DB, f func(b *Batch)) {
	t.Helper()
	write(t, d, true, f)
}

func write(t *testing.T, d *DB, sync bool, f func(b *Batch)) {
	t.Helper()
	if err := d.Write(sync, func(b *Batch) error { f(b); return nil }); err != nil {
		t.Fatal(err)
	}
}

// putEntry commits entry i of a sequence, durably, in each of two namespaces.
func putEntry(d *DB, i uint64) error {
	for _, n := range []string{"", "other"} {
		err := d.Namespace(n).Write(true, func(b *Batch) error {
			b.Append("t", 0, i, Record{ID: fmt.Sprint(i), Payload: make([]byte, 1000)})
			b.SetState("g", 0, fmt.Sprint(i), "n", []byte("value"))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mustPutEntries puts the entries with from <= i < to.
func mustPutEntries(t *testing.T, d *DB, from, to uint64) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := putEntry(d, i); err != nil {
			t.Fatal(err)
		}
	}
}

// countEntries returns how many entries of the sequence both namespaces hold: its first, each
// with its state.
func countEntries(t *testing.T, d *DB) uint64 {
	t.Helper()
	var n [2]uint64
	for space, name := range []string{"", "other"} {
		v := d.Namespace(name)
		for {
			page, err := v.ReadLog("t", 0, n[space], 1<<40, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				if e.Offset != n[space] || e.Record.ID != fmt.Sprint(e.Offset) {
					t.Fatalf("after %d entries comes %d, %q", n[space], e.Offset, e.Record.ID)
				}
				if _, ok, err := v.GetState("g", 0, e.Record.ID, "n"); !ok || err != nil {
					t.Fatalf("entry %d is without its state: %v", e.Offset, err)
				}
				n[space]++
			}
		}
	}
	if n[0] != n[1] && n[0] != n[1]+1 {
		t.Errorf("%d entries in the first namespace, %d in the second", n[0], n[1])
	}
	return n[1]
}

// flush moves what is in the log into a table.
func flush(t *testing.T, d *DB) {
	t.Helper()
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
}

// newFilledFS is the file system of a store of 100 entries, 50 in a table and 50 in the log.
func newFilledFS(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	d := open(t, Options{Dir: "/data", FS: mem})
	mustPutEntries(t, d, 0, 50)
	flush(t, d)
	mustClose(t, d)
	d = open(t, Options{Dir: "/data", FS: mem})
	mustPutEntries(t, d, 50, 100)
	mustClose(t, d)
	return mem
}

// wantErrorText checks that err has all texts.
func wantErrorText(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q in it", what, err, text)
		}
	}
}

// wantBroken checks that err is Broken and has all texts.
func wantBroken(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
		t.Errorf("%s: %v is not Broken", what, err)
	}
	wantErrorText(t, what, err, texts...)
}

// wantNoFiles checks that nothing in dir has a name with part in it.
func wantNoFiles(t *testing.T, f vfs.FS, dir, part string) {
	t.Helper()
	names, err := f.List(dir)
	left := slices.DeleteFunc(names, func(n string) bool { return !strings.Contains(n, part) })
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
