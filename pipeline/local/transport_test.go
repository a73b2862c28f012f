package local

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestNamespaces: two transports over one store share nothing, not even the positions of
// their messages, and one that drops its groups leaves the other's alone.
func TestNamespaces(t *testing.T) {
	db := newMemoryStore(t)
	topics := map[string]Topic{"t": {Groups: []string{"g"}}}
	a := open(t, Config{Store: db, Namespace: "a", Topics: topics})
	b := open(t, Config{Store: db, Namespace: "b", Topics: topics})
	for name, tr := range map[string]*Transport{"in a": a, "in b": b} {
		publish(t, tr, newMessage("t", "k", name, 0))
	}
	positions := map[string]bool{}
	for name, tr := range map[string]*Transport{"in a": a, "in b": b} {
		msg := <-subscribe(t, tr, "g", "t")
		if msg.UUID != name {
			t.Errorf("got %s, want %s", msg.UUID, name)
		}
		position := positionOf(msg)
		positions[position] = true
		if flow.Lineage(position) != tr.db.ID() {
			t.Errorf("the lineage of %s is not %s", position, tr.db.ID())
		}
		if err := transactionOf(msg).State("k").Set("n", []byte(name)); err != nil {
			t.Fatal(err)
		}
		msg.Ack()
	}
	if len(positions) != 2 {
		t.Errorf("the first messages of both stand at %v", positions)
	}
	mustClose(t, a)
	mustClose(t, b)
	a = open(t, Config{Store: db, Namespace: "a", Topics: map[string]Topic{"t": {Groups: []string{"other"}}}})
	b = open(t, Config{Store: db, Namespace: "b", Topics: topics})
	if _, ok, err := a.State("g", "k").Get("n"); ok || err != nil {
		t.Errorf("a group that is not declared any more keeps its state (%v)", err)
	}
	if v, _, err := b.State("g", "k").Get("n"); string(v) != "in b" || err != nil {
		t.Errorf("the other namespace's group was dropped, too: got %q, %v", v, err)
	}
}

// TestNamespaceIsUsedOnce: until it is closed.
func TestNamespaceIsUsedOnce(t *testing.T) {
	db := newMemoryStore(t)
	first := open(t, Config{Store: db, Namespace: "a"})
	if _, err := Open(Config{Store: db, Namespace: "a"}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("got %v, want an error that names the namespace", err)
	}
	open(t, Config{Store: db})
	mustClose(t, first)
	open(t, Config{Store: db, Namespace: "a"})
}

// TestDiskOfAStore: the disk of a given store is watched by each of its transports.
func TestDiskOfAStore(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(store.Options{Dir: dir, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, name := range []string{"a", "b"} {
		looked := make(chan string, 10)
		tr := open(t, Config{Store: db, Namespace: name, MinFree: 1000, Free: func(dir string) (int64, error) {
			select {
			case looked <- dir:
			default:
			}
			return 999, nil
		}})
		if got := <-looked; got != dir || tr.Ready() == nil {
			t.Errorf("%s looks at %q, and says %v", name, got, tr.Ready())
		}
	}
}

// TestOnBroken: what the transport itself cannot read, a log, is told with what to do; the
// message comes when the disk works again.
func TestOnBroken(t *testing.T) {
	var failing atomic.Bool
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && (op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt) && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	}))
	openOn := func(fs vfs.FS, told func(error)) (*Transport, *store.DB) {
		db, err := store.Open(store.Options{Dir: "/data", FS: fs, Lanes: 1})
		if err != nil {
			t.Fatal(err)
		}
		return open(t, Config{Store: db, Bound: 1 << 20, MaxPause: time.Millisecond, OnBroken: told}), db
	}
	// The second opening writes the log of the first one into a table.
	tr, db := openOn(mem, nil)
	subscribe(t, tr, "g", "in")
	for range 40 {
		publish(t, tr, newMessage("in", "k", "id", readChunkBytes/20))
	}
	if err := errors.Join(tr.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	tr, db = openOn(fs, func(err error) {
		select {
		case told <- err:
		default:
		}
	})
	failing.Store(true)
	ch := subscribe(t, tr, "g", "in")
	var err error
	for n := 0; err == nil; n++ { // what it read before
		select {
		case msg := <-ch:
			msg.Ack()
		case err = <-told:
		}
		if n == 40 {
			t.Fatal("it read all")
		}
	}
	class, _ := failure.ClassOf(err)
	if class != failure.ClassBroken || !strings.Contains(err.Error(), "the store in /data cannot be read") || !strings.Contains(err.Error(), "start again") {
		t.Errorf("told %v", err)
	}
	failing.Store(false)
	(<-ch).Ack()
	if err := errors.Join(tr.Close(), db.Close()); err != nil {
		t.Error(err)
	}
}

// TestBackup: a copy goes on where the original stood, and its messages have positions of
// their own from the first one that it takes in.
func TestBackup(t *testing.T) {
	top := t.TempDir()
	topics := map[string]Topic{"t": {Groups: []string{"g"}}}
	tr := open(t, Config{Dir: filepath.Join(top, "data"), Lanes: 1, Topics: topics})
	for _, id := range []string{"done", "open"} {
		publish(t, tr, newMessage("t", "k", id, 0))
	}
	ch := subscribe(t, tr, "g", "t")
	(<-ch).Ack()
	next := <-ch // so the first is committed
	original := positionOf(next)
	copies := []string{filepath.Join(top, "copy"), filepath.Join(top, "unpacked")}
	if err := tr.db.Backup(copies[0]); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := tr.BackupTo(&archive); err != nil {
		t.Fatal(err)
	}
	if err := store.Unpack(&archive, copies[1]); err != nil {
		t.Fatal(err)
	}
	next.Ack()
	seen := []string{original}
	for _, dir := range copies {
		c := open(t, Config{Dir: dir, Topics: topics})
		msg := <-subscribe(t, c, "g", "t")
		position := positionOf(msg)
		if msg.UUID != "open" || slices.Contains(seen, position) {
			t.Errorf("%s goes on with %s at %s; others stand at %q", dir, msg.UUID, position, seen)
		}
		seen = append(seen, position)
		msg.Ack()
	}
}
