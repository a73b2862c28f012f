package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/flow"
)

// killedNow returns what a store on mem leaves when its process is killed: all that was written,
// synced or not.
func killedNow(mem *vfs.MemFS) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// content returns the states, log and positions of d.
func content(t *testing.T, d *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, v := range d.ScanState("g", 1, "k", "") {
		if v.Err != nil {
			t.Fatal(v.Err)
		}
		all["state "+name] = string(v.Bytes)
	}
	begin, end, err := d.Bounds("t", 1)
	if err != nil {
		t.Fatal(err)
	}
	all["bounds"] = fmt.Sprint(begin, end)
	log, err := d.ReadLog("t", 1, 0, 1<<40, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		all[fmt.Sprintf("log %d", e.Offset)] = e.Record.ID
	}
	positions, err := d.Positions()
	if err != nil {
		t.Fatal(err)
	}
	all["positions"] = fmt.Sprint(positions)
	return all
}

// TestGatheredAgainstWritten makes the same random commits in a store that gathers them and in one
// that does not. Both show the same, and a crash of the first leaves what the second showed after
// one of its commits, the last that was synced or a later one.
func TestGatheredAgainstWritten(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 0))
		mem := vfs.NewCrashableMem()
		d := open(t, Options{Dir: "data", FS: mem, Gather: time.Hour})
		plain := open(t, Options{})
		shown := []map[string]string{content(t, plain)}
		var head, low uint64
		synced := 0
		for n := 1; n <= 60; n++ {
			var writes []func(*Batch)
			for range dice.IntN(4) {
				name, v := fmt.Sprint(dice.IntN(8)), binary.AppendUvarint(nil, dice.Uint64()>>dice.IntN(64))
				if dice.IntN(3) == 0 {
					writes = append(writes, func(b *Batch) { b.DeleteState("g", 1, "k", name) })
				} else {
					writes = append(writes, func(b *Batch) { b.SetState("g", 1, "k", name, v) })
				}
			}
			at := head
			writes = append(writes, func(b *Batch) { b.Append("t", 1, at, Record{ID: fmt.Sprint("m", at)}) })
			head++
			if dice.IntN(4) == 0 {
				from, to := low, low+dice.Uint64N(head-low+1)
				writes = append(writes, func(b *Batch) { b.Trim("t", 1, from, to); b.SetPosition("g", "t", 1, to) })
				low = to
			}
			sync := dice.IntN(10) == 0
			if sync {
				synced = n
			}
			for _, db := range []*DB{d, plain} {
				write(t, db, sync, func(b *Batch) {
					for _, w := range writes {
						w(b)
					}
				})
			}
			for i := range 8 {
				name := fmt.Sprint(i)
				got, ok, err := d.GetState("g", 1, "k", name)
				want, wantOK, _ := plain.GetState("g", 1, "k", name)
				if ok != wantOK || string(got) != string(want) || err != nil {
					t.Fatalf("seed %d, commit %d: state %s is %q, %v, %v, want %q, %v", seed, n, name, got, ok, err, want, wantOK)
				}
			}
			shown = append(shown, content(t, plain))
			if dice.IntN(15) == 0 {
				if got := content(t, d); !maps.Equal(got, shown[n]) {
					t.Fatalf("seed %d, commit %d: got %v, want %v", seed, n, got, shown[n])
				}
			}
		}
		after := open(t, Options{Dir: "data", FS: killedNow(mem)})
		got, found := content(t, after), -1
		for n := synced; n < len(shown); n++ {
			if maps.Equal(got, shown[n]) {
				found = n
			}
		}
		if found < 0 {
			t.Errorf("seed %d: after the crash the store shows %v, which it never showed from commit %d on", seed, got, synced)
		}
	}
}

// TestGatheredIsWritten: with the next commit that is synced or large, when its time has come and
// at Close.
func TestGatheredIsWritten(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *DB){
		"sync":   func(t *testing.T, d *DB) { commit(t, d, func(b *Batch) { b.SetState("g", 1, "other", "", nil) }) },
		"large":  func(t *testing.T, d *DB) { lazily(t, d, "other", make([]byte, gatherBytes)) },
		"timer":  func(_ *testing.T, d *DB) { d.writeLater() },
		"close":  func(t *testing.T, d *DB) { d.Close() },
		"nobody": func(*testing.T, *DB) {},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			d := open(t, Options{Dir: "data", FS: mem, Gather: time.Hour})
			lazily(t, d, "k", []byte("v"))
			write(t, d)
			after := open(t, Options{Dir: "data", FS: killedNow(mem)})
			if _, ok, err := after.GetState("g", 1, "k", "n"); ok == (name == "nobody") || err != nil {
				t.Errorf("the value is there: %v, %v", ok, err)
			}
		})
	}
}

// TestGatheredStays: a scan of keys of another kind leaves it gathered, also in a namespace. A scan of its kind
// shows it.
func TestGatheredStays(t *testing.T) {
	for _, space := range []string{"", "other"} {
		d := open(t, Options{Dir: "data", FS: vfs.NewCrashableMem(), Gather: time.Hour})
		n := d.Namespace(space)
		write(t, n, false, func(b *Batch) {
			b.SetState("g", 1, "k", flow.Hot+"n", []byte("v"))
			b.SetState("g", 1, "k", flow.Hot+"gone", []byte("v"))
			b.DropPositions("g", "gone")
		})
		names := func(d *DB, prefix string) (all []string) {
			t.Helper()
			for name, v := range d.ScanState("g", 1, "k", prefix) {
				if v.Err != nil {
					t.Fatal(v.Err)
				}
				all = append(all, name)
			}
			return all
		}
		if got := names(d, "sub/"); got != nil {
			t.Errorf("namespace %q: names that were never set: %q", space, got)
		}
		if d.gathered.values == nil {
			t.Errorf("namespace %q: a scan of another kind wrote what was gathered", space)
		}
		if got, want := names(n, flow.Hot), []string{flow.Hot + "gone", flow.Hot + "n"}; !slices.Equal(got, want) {
			t.Errorf("namespace %q: got the names %q, want %q", space, got, want)
		}
		write(t, n, false, func(b *Batch) { b.DropState("g") })
		if got := names(n, ""); got != nil {
			t.Errorf("namespace %q: names after all were removed: %q", space, got)
		}
	}
}

// lazily commits a value without sync.
func lazily(t *testing.T, d *DB, key string, value []byte) {
	t.Helper()
	write(t, d, false, func(b *Batch) { b.SetState("g", 1, key, "n", value) })
}

// TestGatherTimer: the first batch sets a timer.
func TestGatherTimer(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := open(t, Options{Dir: "data", FS: mem, Gather: time.Millisecond})
	lazily(t, d, "k", []byte("v"))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.gathered.mu.RLock()
		written := d.gathered.values == nil
		d.gathered.mu.RUnlock()
		if written {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it was not written")
		}
	}
}
