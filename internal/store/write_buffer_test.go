package store

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestGatheredIsWritten: with the next commit that is synced or large, when its time has come and
// at Close.
func TestGatheredIsWritten(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *DB){
		"sync":   func(t *testing.T, d *DB) { commit(t, d, func(b *Batch) { b.SetState("g", 3, "other", "", nil) }) },
		"large":  func(t *testing.T, d *DB) { writeUnsynced(t, d, "other", make([]byte, maxBufferBytes/2)) },
		"timer":  waitForTimer,
		"close":  func(t *testing.T, d *DB) { mustClose(t, d) },
		"nobody": func(*testing.T, *DB) {},
	} {
		t.Run(name, func(t *testing.T) {
			mem, every := vfs.NewCrashableMem(), time.Hour
			if name == "timer" {
				every = time.Millisecond
			}
			d := open(t, Options{Dir: "data", FS: mem, Gather: every})
			writeUnsynced(t, d, "k", []byte("v"))
			write(t, d)
			// A killed process leaves all that was written, synced or not.
			killed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			after := open(t, Options{Dir: "data", FS: killed})
			if _, ok, err := after.GetState("g", 3, "k", "n"); ok == (name == "nobody") || err != nil {
				t.Errorf("the value is there: %v, %v", ok, err)
			}
		})
	}
}

// waitForTimer waits until d has written what it gathered.
func waitForTimer(t *testing.T, d *DB) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.syncMu.Lock()
		durable := d.syncedBatches > 0
		d.syncMu.Unlock()
		if durable {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it was not written")
		}
	}
}

// TestGatheredStays: a scan of keys of another kind leaves it gathered, also in a namespace. A scan of its kind
// shows it.
func TestGatheredStays(t *testing.T) {
	for _, space := range []string{"", "other"} {
		d := open(t, Options{Dir: "data", FS: vfs.NewCrashableMem(), Gather: time.Hour})
		n := d.Namespace(space)
		write(t, n, false, func(b *Batch) {
			b.SetState("g", 3, "k", flow.Hot+"n", []byte("v"))
			b.SetState("g", 3, "k", flow.Hot+"gone", []byte("v"))
			b.DropPositions("g", "gone")
		})
		if got := stateNames(t, d, "sub/"); got != nil {
			t.Errorf("namespace %q: names that were never set: %q", space, got)
		}
		if d.buffer.values == nil {
			t.Errorf("namespace %q: a scan of another kind wrote what was gathered", space)
		}
		if got, want := stateNames(t, n, flow.Hot), []string{flow.Hot + "gone", flow.Hot + "n"}; !slices.Equal(got, want) {
			t.Errorf("namespace %q: got the names %q, want %q", space, got, want)
		}
		write(t, n, false, func(b *Batch) { b.DropState("g") })
		if _, ok, err := n.GetState("g", 3, "k", flow.Hot+"n"); ok || err != nil {
			t.Errorf("namespace %q: a value is still there after all were removed: %v", space, err)
		}
		if got := stateNames(t, n, ""); got != nil {
			t.Errorf("namespace %q: names after all were removed: %q", space, got)
		}
	}
}

// writeUnsynced commits a value without sync.
func writeUnsynced(t *testing.T, d *DB, key string, value []byte) {
	t.Helper()
	write(t, d, false, func(b *Batch) { b.SetState("g", 3, key, "n", value) })
}
