package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/flow"
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

// TestSizeHasTheLog checks that Size counts the write-ahead log, which alone holds a new commit.
func TestSizeHasTheLog(t *testing.T) {
	d := open(t, Options{Dir: t.TempDir()})
	const size = 100_000
	before := d.Size()
	commit(t, d, func(b *Batch) {
		noise := make([]byte, size)
		for i := range noise {
			noise[i] = byte(i * i >> 3)
		}
		b.SetState("group", 0, "key", "name", noise)
	})
	if grown := d.Size() - before; grown < size || grown > 2*size {
		t.Errorf("the size grew by %d bytes, want about %d", grown, size)
	}
}

func TestOpenKeepsWhatWasFixed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	d := open(t, Options{Dir: dir, Lanes: 5})
	id := d.ID()
	mustClose(t, d)
	d = open(t, Options{Dir: dir, Lanes: 7})
	if d.ID() != id || d.Lanes() != 5 {
		t.Errorf("reopened with ID %s and %d lanes, want %s and 5", d.ID(), d.Lanes(), id)
	}
	if other := open(t, Options{}); other.ID() == id || other.Lanes() != DefaultLanes {
		t.Errorf("another store has ID %s and %d lanes", other.ID(), other.Lanes())
	}
}

func TestOpenErrors(t *testing.T) {
	used := t.TempDir()
	open(t, Options{Dir: used})
	newer, older := t.TempDir(), t.TempDir()
	for dir, format := range map[string]byte{newer: Format + 1, older: Format - 1} {
		d := open(t, Options{Dir: dir})
		if err := d.pebble.Set([]byte{kindMeta}, []byte{format}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		mustClose(t, d)
	}
	tests := map[string]struct {
		o    Options
		want []string
	}{
		"in use": {Options{Dir: used}, []string{used, "in use by this process"}},
		"older":  {Options{Dir: older}, []string{older, "older version", fmt.Sprint("format ", Format-1)}},
		"newer":  {Options{Dir: newer}, []string{newer, "newer version", fmt.Sprint("format ", Format+1)}},
		"lanes":  {Options{Lanes: -1}, []string{"-1 lanes"}},
	}
	for name, test := range tests {
		_, err := Open(test.o)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", name, err, want)
			}
		}
	}
}

func TestLog(t *testing.T) {
	d := open(t, Options{})
	commit(t, d, func(b *Batch) {
		for i := range uint64(10) {
			b.Append("t", 1, i, Record{ID: string(rune('a' + i)), Payload: make([]byte, 100)})
			b.Append("t", 2, i, Record{ID: "neighbour"})
			b.Append("t\x00", 1, i, Record{ID: "neighbour"})
		}
		b.Trim("t", 1, 0, 3)
	})
	if begin, end, err := d.Bounds("t", 1); begin != 3 || end != 10 || err != nil {
		t.Errorf("Bounds = %d, %d, %v, want 3, 10", begin, end, err)
	}
	ids := func(from, to uint64, bytes int) string {
		page, err := d.ReadLog("t", 1, from, to, bytes)
		if err != nil {
			t.Fatal(err)
		}
		var ids string
		for _, e := range page {
			ids += e.Record.ID
		}
		return ids
	}
	for _, test := range []struct {
		from, to uint64
		bytes    int
		want     string
	}{{0, 99, 1 << 20, "defghij"}, {5, 8, 1 << 20, "fgh"}, {5, 8, 1, "f"}, {5, 8, 300, "fg"}, {10, 99, 1 << 20, ""}} {
		if got := ids(test.from, test.to, test.bytes); got != test.want {
			t.Errorf("ReadLog from %d to %d of %d bytes = %q, want %q", test.from, test.to, test.bytes, got, test.want)
		}
	}
	commit(t, d, func(b *Batch) { b.Trim("t", 1, 3, 10) })
	if begin, end, err := d.Bounds("t", 1); begin != 10 || end != 10 || err != nil {
		t.Errorf("Bounds of a log that was trimmed to its end = %d, %d, %v, want 10, 10", begin, end, err)
	}
	if topics, err := d.Topics(); !slices.Equal(topics, []string{"t", "t\x00"}) || err != nil {
		t.Errorf("Topics = %q, %v", topics, err)
	}
}

func TestPositionsAndGroups(t *testing.T) {
	d := open(t, Options{})
	commit(t, d, func(b *Batch) {
		b.SetPosition("g", "t", 1, 5)
		b.SetPosition("g", "t", 1, 6)
		b.SetPosition("g", "u", 0, 7)
		b.SetPosition("gg", "t", 2, 8)
		b.SetState("g", 0, "k", "n", nil)
		b.SetState("gg", 0, "k", "n", nil)
	})
	want := []Position{{"g", "t", 1, 6}, {"g", "u", 0, 7}, {"gg", "t", 2, 8}}
	if got, err := d.Positions(); !slices.Equal(got, want) || err != nil {
		t.Errorf("Positions = %v, %v, want %v", got, err, want)
	}
	commit(t, d, func(b *Batch) { b.DropPositions("g", "t"); b.DropState("g") })
	if got, err := d.Positions(); !slices.Equal(got, want[1:]) || err != nil {
		t.Errorf("Positions = %v, %v, want %v", got, err, want[1:])
	}
	for g, want := range map[string]bool{"g": false, "gg": true} {
		if _, ok, err := d.GetState(g, 0, "k", "n"); ok != want || err != nil {
			t.Errorf("state of %s: %v, %v, want %v", g, ok, err, want)
		}
	}
}

// TestHot: the values of one hot name are listed by key, and nothing else.
func TestHot(t *testing.T) {
	d := open(t, Options{})
	name := flow.Hot + "n"
	commit(t, d, func(b *Batch) {
		b.SetState("g", 1, "k2", name, []byte("2"))
		b.SetState("g", 1, "k1", name, []byte("1"))
		b.SetState("g", 1, "k1", flow.Hot+"other", nil)
		b.SetState("g", 1, "k1", "n", nil)
		b.SetState("g", 2, "k3", name, nil)
		b.SetState("h", 1, "k4", name, nil)
		b.SetState("not hot", 1, "k4", "n", nil)
	})
	got := func() (all []string) {
		t.Helper()
		for key, v := range d.Hot("g", 1, name) {
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			all = append(all, key+"="+string(v.Bytes))
		}
		return all
	}
	if all, want := got(), []string{"k1=1", "k2=2"}; !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
	for range d.Hot("g", 1, name) {
		break // the rest is not yielded
	}
	if groups, err := d.HotGroups(); err != nil || !slices.Equal(groups, []string{"g", "h"}) {
		t.Errorf("HotGroups = %q, %v", groups, err)
	}
	commit(t, d, func(b *Batch) { b.DropState("g") })
	if all := got(); len(all) > 0 {
		t.Errorf("a dropped group has %q", all)
	}
}

// TestPanicInALoop checks that a loop over the values of a store may panic: the store can still be
// used, and closed.
func TestPanicInALoop(t *testing.T) {
	d := open(t, Options{Dir: t.TempDir()})
	commit(t, d, func(b *Batch) {
		b.SetState("group", 0, "key", "name", []byte("1"))
		b.SetState("group", 0, "key", flow.Hot+"name", []byte("2"))
	})
	for name, loop := range map[string]func(){
		"ScanState": func() {
			for range d.ScanState("group", 0, "key", "") {
				panic("a")
			}
		},
		"Hot": func() {
			for range d.Hot("group", 0, flow.Hot+"name") {
				panic("a")
			}
		},
		"StateKeys": func() {
			for range d.StateKeys("group", "", "") {
				panic("a")
			}
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s yielded nothing", name)
				}
			}()
			loop()
		}()
	}
	if v, ok, err := d.GetState("group", 0, "key", "name"); string(v) != "1" || !ok || err != nil {
		t.Errorf("afterwards GetState is %q, %v, %v", v, ok, err)
	}
}

// TestSecondCloseWaits checks that a second Close returns when the store is closed, and not before.
func TestSecondCloseWaits(t *testing.T) {
	d, err := Open(Options{Dir: "data", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	set := func(b *Batch) error { b.SetState("g", 0, "k", "n", nil); return nil }
	wait, err := d.Apply(true, set)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- d.Close() }()
	for !errors.Is(d.Write(false, set), ErrClosed) { // until the first Close waits for the commit
		runtime.Gosched()
	}
	go func() { ended <- d.Close() }()
	for range 1000 { // enough for a Close that does not wait
		runtime.Gosched()
	}
	if len(ended) > 0 {
		t.Error("Close returned during an operation")
	}
	wait()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// keysOf lists what keys yields.
func keysOf(t *testing.T, keys iter.Seq2[string, error]) (all []string) {
	t.Helper()
	for k, err := range keys {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

func TestStateKeys(t *testing.T) {
	d := open(t, Options{})
	want := []string{"", "a", "a\x00", "b"}
	commit(t, d, func(b *Batch) {
		for _, k := range want {
			b.SetState("g", 0, k, "", nil)
			b.SetState("g", 0, k, "\xff\xff", nil)
		}
		b.SetState("g", 3, "\xff", "n", nil)
		b.SetState("h", 0, "other", "n", nil)
	})
	want = append(want, "\xff")
	if got := keysOf(t, d.StateKeys("g", "", "")); !slices.Equal(got, want) {
		t.Errorf("StateKeys = %q, want %q", got, want)
	}
	for lane, want := range map[int][]string{0: want[:4], 3: want[4:], 4: nil, 0xffff: nil} {
		if got := keysOf(t, d.LaneStateKeys("g", lane, "", "")); !slices.Equal(got, want) {
			t.Errorf("LaneStateKeys of %d = %q, want %q", lane, got, want)
		}
	}
}

// TestStateKeysWithAName holds that only the keys are listed that have a value with the name, and that the
// list can be read in parts.
func TestStateKeysWithAName(t *testing.T) {
	d := open(t, Options{})
	var want []string
	commit(t, d, func(b *Batch) {
		for i := range 600 {
			key := fmt.Sprintf("%04d", i)
			b.SetState("g", i%d.Lanes(), key, "text", nil)
			b.SetState("g", i%d.Lanes(), key, flow.Hot+"other", nil)
			b.SetState("h", i%d.Lanes(), key, flow.WakeName, nil)
			if i%2 == 0 {
				want = append(want, key)
				b.SetState("g", i%d.Lanes(), key, flow.WakeName, nil)
			}
		}
	})
	for after, want := range map[string][]string{"": want, "0299": want[150:], "0300": want[151:], "0598": nil} {
		if got := keysOf(t, d.StateKeys("g", flow.WakeName, after)); !slices.Equal(got, want) {
			t.Errorf("behind %q: %d keys, want %d", after, len(got), len(want))
		}
	}
}

// TestStateKeysGoOnBehindAKey holds that the keys of all lanes are one list, which can be read in parts.
func TestStateKeysGoOnBehindAKey(t *testing.T) {
	d := open(t, Options{})
	var want []string
	commit(t, d, func(b *Batch) {
		for i := range 1000 {
			key := fmt.Sprintf("%04d", i)
			want = append(want, key)
			b.SetState("g", i*7%d.Lanes(), key, "n", nil)
			b.SetState("g", i*7%d.Lanes(), key, "o", nil)
		}
	})
	for after, want := range map[string][]string{"": want, "0": want, "0499": want[500:], "0499\x00": want[500:], "0998": want[999:], "0999": nil} {
		if got := keysOf(t, d.StateKeys("g", "", after)); !slices.Equal(got, want) {
			t.Errorf("behind %q: %d keys, want %d", after, len(got), len(want))
		}
	}
}

func TestOpenErrorTexts(t *testing.T) {
	path := func(err error) error { return &fs.PathError{Op: "mkdir", Path: "/d/part", Err: err} }
	const right = "give this user the right"
	for _, c := range []struct {
		err  error
		want string
	}{
		{os.NewSyscallError("fcntl", errors.New("resource temporarily unavailable")), "/d is in use by another process"},
		{errors.New("lock held by current process"), "/d is in use by this process"},
		{path(syscall.EACCES), right},
		{path(syscall.EPERM), right},
		{path(syscall.EROFS), "can only be read"},
		{path(syscall.ENOSPC), "make room"},
		{path(syscall.ENOTDIR), "is a file"},
		{path(syscall.ENOENT), "no directory can be made there"},
		{path(syscall.EIO), "on a local disk"},
	} {
		got := openError("/d", c.err).Error()
		if !strings.Contains(got, c.want) || strings.Contains(got, "part:") {
			t.Errorf("%v became %q, want %q in it", c.err, got, c.want)
		}
		if strings.Contains(got, right) != (c.want == right) {
			t.Errorf("%v became %q: a right would not help", c.err, got)
		}
	}
}

func TestOpenInWrongPlaces(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		plain:                     "a part of this path is a file",
		filepath.Join(plain, "d"): "a part of this path is a file",
	} {
		if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want it and %q", dir, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(plain), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMemory: the cache and both memtables stay within Options.Memory, but for the least.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		o     Options
		cache int64
		table uint64
	}{
		{Options{}, 48 << 20, 8 << 20},
		{Options{Memory: 1}, 8 << 20, 1 << 20},
		{Options{Memory: 32 << 20}, 24 << 20, 4 << 20},
		{Options{Memory: 1 << 30}, 992 << 20, 16 << 20},
		{Options{MemTable: 64 << 20}, 8 << 20, 64 << 20},
	} {
		if cache, table := tt.o.memory(); cache != tt.cache || table != tt.table {
			t.Errorf("%+v: %d and %d, want %d and %d", tt.o, cache, table, tt.cache, tt.table)
		}
	}
}

// TestStatesApart: values with hot and small names are stored apart, and are read, listed and removed with
// the others.
func TestStatesApart(t *testing.T) {
	d := open(t, Options{})
	commit(t, d, func(b *Batch) {
		b.SetState("g", 0, "both", "cold", []byte("1"))
		b.SetState("g", 0, "both", flow.Hot+"a", []byte("2"))
		b.SetState("g", 0, "both", flow.Hot+"b", []byte("3"))
		b.SetState("g", 0, "hot", flow.Hot+"a", []byte("4"))
		b.SetState("g", 0, "both", flow.Small+"c", []byte("7"))
		b.SetState("g", 1, "moved", flow.Hot+"a", []byte("5"))
		b.SetState("g", 1, "moved too", flow.Small+"a", []byte("8"))
		b.SetState("h", 0, "other", flow.Hot+"a", []byte("6"))
	})
	if v, ok, err := d.GetState("g", 0, "both", flow.Hot+"a"); string(v) != "2" || !ok || err != nil {
		t.Errorf("GetState = %q, %v, %v", v, ok, err)
	}
	for prefix, want := range map[string][]string{
		"": {flow.Hot + "a", flow.Hot + "b", flow.Small + "c", "cold"}, flow.Hot: {flow.Hot + "a", flow.Hot + "b"}, flow.Hot + "b": {flow.Hot + "b"}, flow.Small: {flow.Small + "c"}, "c": {"cold"},
	} {
		for n := 1; n <= len(want); n++ {
			var got []string
			for name, v := range d.ScanState("g", 0, "both", prefix) {
				if v.Err != nil {
					t.Fatal(v.Err)
				}
				if got = append(got, name); len(got) == n {
					break
				}
			}
			if !slices.Equal(got, want[:n]) {
				t.Errorf("%d names with prefix %q are %q", n, prefix, got)
			}
		}
	}
	holds := func(want ...string) {
		t.Helper()
		var all []string
		keys := keysOf(t, d.StateKeys("g", "", ""))
		err := d.EachState(func(k Kept) error {
			if k.Group == "g" && !slices.Contains(all, k.Key) {
				all = append(all, k.Key)
			}
			return nil
		})
		if slices.Sort(all); !slices.Equal(keys, want) || !slices.Equal(all, want) || err != nil {
			t.Errorf("the keys are %q and %q, want %q (%v)", keys, all, want, err)
		}
	}
	holds("both", "hot", "moved", "moved too")
	commit(t, d, func(b *Batch) { b.DeleteState("g", 0, "hot", flow.Hot+"a") })
	holds("both", "moved", "moved too")
	commit(t, d, func(b *Batch) {
		if err := b.DropLane(1); err != nil {
			t.Error(err)
		}
	})
	holds("both")
	commit(t, d, func(b *Batch) { b.DropState("g") })
	holds()
	if _, ok, err := d.GetState("h", 0, "other", flow.Hot+"a"); !ok || err != nil {
		t.Errorf("the state of another group is gone (%v)", err)
	}
}
