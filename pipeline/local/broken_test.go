package local

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/store"
)

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
		tr, err := Open(Config{Store: db, Bound: 1 << 20, MaxPause: time.Millisecond, OnBroken: told})
		if err != nil {
			t.Fatal(err)
		}
		return tr, db
	}
	// The second opening writes the log of the first one into a table.
	tr, db := openOn(mem, nil)
	subscribe(t, tr, "g", "in")
	for range 40 {
		if err := tr.Publish(t.Context(), text("in", "k", "id", readBytes/20)); err != nil {
			t.Fatal(err)
		}
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
	class, _ := pipeline.ClassOf(err)
	if class != pipeline.ClassBroken || !strings.Contains(err.Error(), "the store in /data cannot be read") || !strings.Contains(err.Error(), "start again") {
		t.Errorf("told %v", err)
	}
	failing.Store(false)
	(<-ch).Ack()
	if err := errors.Join(tr.Close(), db.Close()); err != nil {
		t.Error(err)
	}
}
