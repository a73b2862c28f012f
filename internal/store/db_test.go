package store

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/flow"
)

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
	wantNoFiles(t, vfs.Default, dir, ".writable")
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
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const isFile = "a part of this path is a file"
	within := filepath.Join(plain, "d")
	for name, test := range map[string]struct {
		o    Options
		want []string
	}{
		"in use":    {Options{Dir: used}, []string{used, "in use by this process"}},
		"older":     {Options{Dir: older}, []string{older, "older version", fmt.Sprint("format ", Format-1)}},
		"newer":     {Options{Dir: newer}, []string{newer, "newer version", fmt.Sprint("format ", Format+1)}},
		"lanes":     {Options{Lanes: -1}, []string{"-1 lanes"}},
		"a file":    {Options{Dir: plain}, []string{plain, isFile}},
		"in a file": {Options{Dir: within}, []string{within, isFile}},
	} {
		_, err := Open(test.o)
		wantErrorText(t, name, err, test.want...)
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

// TestMalformed: a key or a record that cannot be parsed is damage, too.
func TestMalformed(t *testing.T) {
	d := open(t, Options{})
	for _, key := range [][]byte{d.logKey("t", 1, 0), d.keyPrefix(kindPosition, "g"), d.logStartKey("t", 2)} {
		if err := d.pebble.Set(key, []byte("x"), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	_, log := d.ReadLog("t", 1, 0, 9, 1)
	_, positions := d.Positions()
	_, _, bounds := d.Bounds("t", 2)
	wantBroken(t, "ReadLog", log, "is damaged (store: malformed record)")
	wantBroken(t, "Positions", positions, "is damaged (store: malformed key")
	wantBroken(t, "Bounds", bounds, "is damaged (store: malformed key)")
}

func TestPositions(t *testing.T) {
	d := open(t, Options{})
	commit(t, d, func(b *Batch) {
		b.SetPosition("g", "t", 1, 5)
		b.SetPosition("g", "t", 1, 6)
		b.SetPosition("g", "u", 0, 7)
		b.SetPosition("gg", "t", 2, 8)
	})
	want := []Position{{"g", "t", 1, 6}, {"g", "u", 0, 7}, {"gg", "t", 2, 8}}
	if got, err := d.Positions(); !slices.Equal(got, want) || err != nil {
		t.Errorf("Positions = %v, %v, want %v", got, err, want)
	}
	commit(t, d, func(b *Batch) { b.DropPositions("g", "t") })
	if got, err := d.Positions(); !slices.Equal(got, want[1:]) || err != nil {
		t.Errorf("Positions = %v, %v, want %v", got, err, want[1:])
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
	if !panicInLoop(d.ScanState("group", 0, "key", "")) || !panicInLoop(d.Hot("group", 0, flow.Hot+"name")) ||
		!panicInLoop(d.StateKeys("group", "", "")) {
		t.Error("a loop yielded nothing")
	}
	if v, ok, err := d.GetState("group", 0, "key", "name"); string(v) != "1" || !ok || err != nil {
		t.Errorf("afterwards GetState is %q, %v, %v", v, ok, err)
	}
}

// panicInLoop breaks a loop off with a panic. It returns false if there is nothing to loop over.
func panicInLoop[V any](all iter.Seq2[string, V]) (yielded bool) {
	defer func() { yielded = recover() != nil }()
	for range all {
		panic("a")
	}
	return false
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

// collectKeys lists what keys yields.
func collectKeys(t *testing.T, keys iter.Seq2[string, error]) (all []string) {
	t.Helper()
	for k, err := range keys {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

// TestStateKeys holds that the keys of all lanes are one list, that only those are in it that have a value
// with the name, if there is one, and that it can be read in parts.
func TestStateKeys(t *testing.T) {
	d := open(t, Options{})
	few := []string{"", "a", "a\x00", "b", "\xff"}
	var all, even []string
	commit(t, d, func(b *Batch) {
		for _, key := range few[:4] {
			b.SetState("few", 0, key, "", nil)
			b.SetState("few", 0, key, "\xff\xff", nil)
		}
		b.SetState("few", 3, few[4], "n", nil)
		for i := range 1000 {
			key, lane := fmt.Sprintf("%04d", i), i*7%d.Lanes()
			all = append(all, key)
			b.SetState("many", lane, key, "text", nil)
			b.SetState("many", lane, key, flow.Hot+"other", nil)
			b.SetState("others", lane, key, flow.WakeName, nil)
			if i%2 == 0 {
				even = append(even, key)
				b.SetState("many", lane, key, flow.WakeName, nil)
			}
		}
	})
	for _, test := range []struct {
		group, name, after string
		want               []string
	}{
		{"few", "", "", few},
		{"many", "", "", all},
		{"many", "", "0", all},
		{"many", "", "0499", all[500:]},
		{"many", "", "0499\x00", all[500:]},
		{"many", "", "0998", all[999:]},
		{"many", "", "0999", nil},
		{"many", flow.WakeName, "", even},
		{"many", flow.WakeName, "0299", even[150:]},
		{"many", flow.WakeName, "0300", even[151:]},
		{"many", flow.WakeName, "0998", nil},
	} {
		if got := collectKeys(t, d.StateKeys(test.group, test.name, test.after)); !slices.Equal(got, test.want) {
			t.Errorf("%d keys of %q with %q behind %q, want %d: %q", len(got), test.group, test.name, test.after, len(test.want), got)
		}
	}
	for lane, want := range map[int][]string{0: few[:4], 3: few[4:], 4: nil, 0xffff: nil} {
		if got := collectKeys(t, d.LaneStateKeys("few", lane, "", "")); !slices.Equal(got, want) {
			t.Errorf("LaneStateKeys of %d = %q, want %q", lane, got, want)
		}
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
		if cache, table := tt.o.memorySizes(); cache != tt.cache || table != tt.table {
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
		b.SetState("gg", 0, "other", flow.Hot+"a", []byte("6"))
		b.SetState("not hot", 0, "other", "n", nil)
	})
	var hot []string
	for key, v := range d.Hot("g", 0, flow.Hot+"a") {
		hot = append(hot, key+"="+string(v.Bytes))
	}
	if want := []string{"both=2", "hot=4"}; !slices.Equal(hot, want) {
		t.Errorf("the hot values are %q, want %q", hot, want)
	}
	for range d.Hot("g", 0, flow.Hot+"a") {
		break // the rest is not yielded
	}
	if groups, err := d.HotGroups(); err != nil || !slices.Equal(groups, []string{"g", "gg"}) {
		t.Errorf("HotGroups = %q, %v", groups, err)
	}
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
		if keys := collectKeys(t, d.StateKeys("g", "", "")); !slices.Equal(keys, want) {
			t.Errorf("the keys are %q, want %q", keys, want)
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
	for key := range d.Hot("g", 0, flow.Hot+"a") {
		t.Errorf("a dropped group has %q", key)
	}
	if _, ok, err := d.GetState("gg", 0, "other", flow.Hot+"a"); !ok || err != nil {
		t.Errorf("the state of another group is gone (%v)", err)
	}
}
