package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestBackup: copies of a store that is written to are whole, and stores of their own.
func TestBackup(t *testing.T) {
	top := t.TempDir()
	d := open(t, Options{Dir: filepath.Join(top, "data"), Lanes: 3})
	id := d.ID()
	mustPutEntries(t, d, 0, 100)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := uint64(100); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := putEntry(d, i); err != nil {
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
	again := filepath.Join(top, "again") // a copy of a copy that was not opened yet
	if err := os.CopyFS(again, os.DirFS(made[3])); err != nil {
		t.Fatal(err)
	}
	made = append(made, again)
	ids, last := map[string]bool{id: true, d.Namespace("other").ID(): true}, uint64(100)
	for _, dir := range made {
		c := open(t, Options{Dir: dir})
		n := countEntries(t, c)
		if n < last || c.Lanes() != 3 {
			t.Errorf("%s holds %d entries and %d lanes, want at least %d and 3", dir, n, c.Lanes(), last)
		}
		last = n
		mustPutEntries(t, c, n, n+1)
		before := c.ID()
		ids[before], ids[c.Namespace("other").ID()] = true, true
		mustClose(t, c)
		if c = open(t, Options{Dir: dir}); c.ID() != before || countEntries(t, c) != n+1 {
			t.Errorf("%s opened again has the ID %s, was %s, and %d entries", dir, c.ID(), before, countEntries(t, c))
		}
	}
	if len(ids) != 2+2*len(made) {
		t.Errorf("%d copies and their original have %d IDs, want two for each", len(made), len(ids))
	}
	if d.ID() != id || countEntries(t, d) < last {
		t.Errorf("the original changed: ID %s, was %s", d.ID(), id)
	}
	wantNoFiles(t, vfs.Default, filepath.Dir(made[0]), partialInfix)
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
		wantErrorText(t, name, test.d.Backup(test.dir), test.want)
	}
	wantNoFiles(t, vfs.Default, top, "b")
}

// TestBackupOntoAFullDisk fails with what to do; the store, whose own disk has room, does
// not wait for it.
func TestBackupOntoAFullDisk(t *testing.T) {
	full, mem := &fault{kinds: writeOps, pathPart: "/other/", err: syscall.ENOSPC}, vfs.NewMem()
	full.active.Store(true)
	d := open(t, Options{Dir: "/data", FS: errorfs.Wrap(mem, full)})
	enter(t, d, User{DiskFull: func() { t.Error("the store was told that its disk is full") }})
	mustPutEntries(t, d, 0, 1)
	wantErrorText(t, "Backup", d.Backup("/other/backup"), "copying into /other/backup failed: no space left on device; make room")
	wantNoFiles(t, mem, "/other", "")
	mustPutEntries(t, d, 1, 2)
}

// TestBackupPowerCut cuts the power before each of the operations on the disk that a
// backup makes, of which the unsynced ones are lost at random: the copy is whole or not
// there, the store has lost nothing, and the next backup leaves no rest of this one.
func TestBackupPowerCut(t *testing.T) {
	for at := 1; ; at++ {
		p := &powerCut{mem: vfs.NewCrashableMem(), cutAt: at}
		d := open(t, Options{Dir: "/data", FS: p.fs()})
		mustPutEntries(t, d, 0, 5)
		p.setCounting(true)
		if err := d.Backup("/backups/b"); err != nil {
			t.Fatal(err)
		}
		p.setCounting(false)
		after := p.afterCut
		if after == nil {
			if at < 30 {
				t.Errorf("a backup was only %d operations", at)
			}
			return
		}
		d = open(t, Options{Dir: "/data", FS: after})
		if n := countEntries(t, d); n != 5 {
			t.Fatalf("cut before operation %d: the store has %d entries of 5", at, n)
		}
		if names, err := after.List("/backups/b"); err == nil && len(names) > 0 {
			if n := countEntries(t, open(t, Options{Dir: "/backups/b", FS: after})); n != 5 {
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
	mem := newFilledFS(t)
	if err := open(t, Options{Dir: "/data", FS: mem}).Close(); err != nil { // now all is in tables
		t.Fatal(err)
	}
	if err := mem.Remove(lastFile(t, mem, "*.log")); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: "/data", FS: mem})
	if d.hasManifest.Load() {
		t.Fatal("there was something to replay")
	}
	id := d.ID()
	for _, dir := range []string{"/first", "/second"} {
		if err := d.Backup(dir); err != nil {
			t.Fatal(err)
		}
		wantNoFiles(t, mem, dir, "LOCK")
		if n := countEntries(t, open(t, Options{Dir: dir, FS: mem})); n != 100 {
			t.Errorf("%s has %d entries, want 100", dir, n)
		}
	}
	mustClose(t, d)
	if d = open(t, Options{Dir: "/data", FS: mem}); d.ID() != id || countEntries(t, d) != 100 {
		t.Errorf("the original has the ID %s, was %s, and %d entries", d.ID(), id, countEntries(t, d))
	}
}

// TestBackupIsVerified: a copy of which the disk lost a part is none, whichever part it is.
func TestBackupIsVerified(t *testing.T) {
	for _, lost := range []string{"MANIFEST-", ".sst", ".log"} {
		fs := &lossyFS{FS: vfs.NewMem(), dir: "/other", part: lost}
		d := open(t, Options{Dir: "/data", FS: fs})
		mustPutEntries(t, d, 0, 1)
		if lost == ".sst" {
			flush(t, d)
		}
		err := d.Backup("/other/backup")
		if err == nil || !strings.Contains(err.Error(), "no backup was made: the copy is not whole (") || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: got %v", lost, err)
		}
		wantNoFiles(t, fs, "/other", "")
		var sent bytes.Buffer
		fs.dir = "/data/" + spoolPrefix
		if err := d.BackupTo(&sent); err == nil || sent.Len() > 0 {
			t.Errorf("without %s: %d bytes were sent, %v", lost, sent.Len(), err)
		}
		mustPutEntries(t, d, 1, 2)
	}
}
