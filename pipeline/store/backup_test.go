package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// put commits entry i of a sequence, durably, in each of two namespaces.
func put(d *DB, i uint64) error {
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

// mustPut is put for tests.
func mustPut(t *testing.T, d *DB, i uint64) {
	t.Helper()
	if err := put(d, i); err != nil {
		t.Fatal(err)
	}
}

// counted returns how many entries of the sequence both namespaces hold: its first, each
// with its state.
func counted(t *testing.T, d *DB) uint64 {
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

// TestBackup: copies of a store that is written to are whole, and stores of their own.
func TestBackup(t *testing.T) {
	top := t.TempDir()
	d := open(t, Options{Dir: filepath.Join(top, "data"), Lanes: 3})
	id := d.ID()
	for i := range uint64(100) {
		mustPut(t, d, i)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := uint64(100); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := put(d, i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	made := make([]string, 4)
	for i := range made {
		made[i] = filepath.Join(top, "made", "on the way", fmt.Sprint(i))
		if i == 1 {
			if err := os.MkdirAll(made[i], 0o750); err != nil {
				t.Fatal(err)
			}
			made[i] += "/" // as people type it
		}
		if err := d.Backup(made[i]); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	ids, last := map[string]bool{id: true, d.Namespace("other").ID(): true}, uint64(100)
	for _, dir := range made {
		c := open(t, Options{Dir: dir})
		n := counted(t, c)
		if n < last || c.Lanes() != 3 {
			t.Errorf("%s holds %d entries and %d lanes, want at least %d and 3", dir, n, c.Lanes(), last)
		}
		last = n
		mustPut(t, c, n)
		before := c.ID()
		ids[before], ids[c.Namespace("other").ID()] = true, true
		mustClose(t, c)
		if c = open(t, Options{Dir: dir}); c.ID() != before || counted(t, c) != n+1 {
			t.Errorf("%s opened again has the ID %s, was %s, and %d entries", dir, c.ID(), before, counted(t, c))
		}
	}
	if len(ids) != 2+2*len(made) {
		t.Errorf("%d copies and their original have %d IDs, want two for each", len(made), len(ids))
	}
	if d.ID() != id || counted(t, d) < last {
		t.Errorf("the original changed: ID %s, was %s", d.ID(), id)
	}
	if left, err := filepath.Glob(filepath.Join(top, "*", "*", "*"+partial+"*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestCopiesOfACopy have IDs of their own, too.
func TestCopiesOfACopy(t *testing.T) {
	top := t.TempDir()
	d := open(t, Options{Dir: filepath.Join(top, "data")})
	backup, first := filepath.Join(top, "backup"), filepath.Join(top, "first")
	if err := d.Backup(backup); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(first, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	if a, b := open(t, Options{Dir: first}), open(t, Options{Dir: backup}); a.ID() == b.ID() || a.ID() == d.ID() {
		t.Errorf("IDs %s and %s of copies of %s", a.ID(), b.ID(), d.ID())
	}
}

func TestBackupErrors(t *testing.T) {
	top := t.TempDir()
	data := filepath.Join(top, "data")
	d := open(t, Options{Dir: data})
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	closed := open(t, Options{Dir: filepath.Join(top, "closed")})
	mustClose(t, closed)
	for name, test := range map[string]struct {
		d    *DB
		dir  string
		want string
	}{
		"not empty": {d, top, "one in the other"},
		"full":      {closed, data, "is not empty: name a directory"},
		"a file":    {d, file, "is a file: name a directory"},
		"in a file": {d, filepath.Join(file, "backup"), "a part of this path is a file"},
		"inside":    {d, filepath.Join(data, "backup"), "one in the other"},
		"itself":    {d, data, "one in the other"},
		"by a link": {d, filepath.Join(link, "a", "backup"), "one in the other"},
		"memory":    {open(t, Options{}), filepath.Join(top, "b"), "in memory"},
		"closed":    {closed, filepath.Join(top, "b"), "closed"},
	} {
		if err := test.d.Backup(test.dir); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if names, err := filepath.Glob(filepath.Join(top, "b*")); len(names) > 0 || err != nil {
		t.Errorf("failures left %q", names)
	}
}

// TestBackupOntoAFullDisk fails with what to do; the store, whose own disk has room, does
// not wait for it.
func TestBackupOntoAFullDisk(t *testing.T) {
	fs := &fullAt{FS: vfs.NewMem(), dir: "/other"}
	d := open(t, Options{Dir: "/data", FS: fs})
	leave, err := d.Enter(User{DiskFull: func() { t.Error("the store was told that its disk is full") }})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	mustPut(t, d, 0)
	err = d.Backup("/other/backup")
	if err == nil || !strings.Contains(err.Error(), "copying into /other/backup failed: no space left on device; make room") {
		t.Errorf("got %v", err)
	}
	if names, err := fs.List("/other"); len(names) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", names, err)
	}
	mustPut(t, d, 1)
}

// TestBackupPowerCut cuts the power before each of the operations on the disk that a
// backup makes, of which the unsynced ones are lost at random: the copy is whole or not
// there, the store has lost nothing, and the next backup leaves no rest of this one.
func TestBackupPowerCut(t *testing.T) {
	for at := 1; ; at++ {
		p := &powerCut{mem: vfs.NewCrashableMem(), at: at}
		d := open(t, Options{Dir: "/data", FS: p.fs()})
		for i := range uint64(5) {
			mustPut(t, d, i)
		}
		p.turn(true)
		if err := d.Backup("/backups/b"); err != nil {
			t.Fatal(err)
		}
		p.turn(false)
		after := p.after
		if after == nil {
			if at < 30 {
				t.Errorf("a backup was only %d operations", at)
			}
			return
		}
		d = open(t, Options{Dir: "/data", FS: after})
		if n := counted(t, d); n != 5 {
			t.Fatalf("cut before operation %d: the store has %d entries of 5", at, n)
		}
		if names, err := after.List("/backups/b"); err == nil && len(names) > 0 {
			if n := counted(t, open(t, Options{Dir: "/backups/b", FS: after})); n != 5 {
				t.Fatalf("cut before operation %d: the copy has %d entries of 5", at, n)
			}
			continue
		}
		if err := d.Backup("/backups/b"); err != nil {
			t.Fatalf("cut before operation %d: %v", at, err)
		}
		if names, err := after.List("/backups"); len(names) != 1 || err != nil {
			t.Fatalf("cut before operation %d: backups are %q, %v", at, names, err)
		}
	}
}

// TestBackupAtOnce: a store that was opened and has written nothing yet is copied whole,
// also where it was killed at its start, before it made a new log: the next start has none
// to replay.
func TestBackupAtOnce(t *testing.T) {
	mem := filled(t)
	if err := open(t, Options{Dir: "/data", FS: mem}).Close(); err != nil { // now all is in tables
		t.Fatal(err)
	}
	if err := mem.Remove(last(t, mem, "*.log")); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: "/data", FS: mem})
	if d.manifest.Load() {
		t.Fatal("there was something to replay")
	}
	id := d.ID()
	for _, dir := range []string{"/first", "/second"} {
		if err := d.Backup(dir); err != nil {
			t.Fatal(err)
		}
		if names, err := mem.List(dir); slices.Contains(names, "LOCK") || err != nil {
			t.Errorf("%s holds %q, %v", dir, names, err)
		}
		if n := counted(t, open(t, Options{Dir: dir, FS: mem})); n != 100 {
			t.Errorf("%s has %d entries, want 100", dir, n)
		}
	}
	mustClose(t, d)
	if d = open(t, Options{Dir: "/data", FS: mem}); d.ID() != id || counted(t, d) != 100 {
		t.Errorf("the original has the ID %s, was %s, and %d entries", d.ID(), id, counted(t, d))
	}
}

// TestBackupIsVerified: a copy of which the disk lost a part is none, whichever part it is.
func TestBackupIsVerified(t *testing.T) {
	for _, lost := range []string{"MANIFEST-", ".sst", ".log"} {
		fs := &losing{FS: vfs.NewMem(), dir: "/other", part: lost}
		d := open(t, Options{Dir: "/data", FS: fs})
		mustPut(t, d, 0)
		if lost == ".sst" {
			if err := d.pebble.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		err := d.Backup("/other/backup")
		if err == nil || !strings.Contains(err.Error(), "no backup was made: the copy is not whole (") || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: got %v", lost, err)
		}
		if names, err := fs.List("/other"); len(names) > 0 || err != nil {
			t.Errorf("without %s: left behind: %q, %v", lost, names, err)
		}
		var sent bytes.Buffer
		fs.dir = "/data/" + spool
		if err := d.BackupTo(&sent); err == nil || sent.Len() > 0 {
			t.Errorf("without %s: %d bytes were sent, %v", lost, sent.Len(), err)
		}
		mustPut(t, d, 1)
	}
}
