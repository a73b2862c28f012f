package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestState tests the properties of state on which the transports rely, in each kind of store.
func TestState(t *testing.T) {
	tests := map[string]func(*testing.T, *fixture){
		"MissingIsNotEmpty":       testMissing,
		"ScanIsExactAndOrdered":   testScan,
		"ScanSeesOneMoment":       testScanMoment,
		"BrokenOffScan":           testBrokenOffScan,
		"CallerOwnsBytes":         testCallerOwnsBytes,
		"BatchesAreAtomic":        testBatches,
		"ErrClosed":               testErrClosed,
		"LargeValueSurvivesCrash": testLargeValue,
		"RandomBatchesAndCrashes": testRandomBatches,
	}
	for kind, s := range map[string]fixture{
		"memory": {}, "crashable": {dir: "data"}, "gathered": {dir: "data", gather: time.Hour}, "namespace": {dir: "data", namespace: "name"},
	} {
		for name, test := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				s := s
				s.fs = vfs.NewCrashableMem()
				test(t, &s)
			})
		}
	}
}

// fixture opens stores in dir on fs, one after the other, or in memory without a dir.
type fixture struct {
	dir       string
	fs        *vfs.MemFS
	namespace string
	gather    time.Duration
}

// open opens a store and returns the state of one key in it. Beside that key there are neighbours that its scans
// must not see.
func (s *fixture) open(t *testing.T) keyState {
	t.Helper()
	db := open(t, Options{Dir: s.dir, FS: s.fs, Gather: s.gather})
	for _, name := range []string{"", "nam", "name", "name\x00", "name\xff", "other"} {
		if name != s.namespace {
			write(t, db.Namespace(name), false, func(b *Batch) { b.SetState("g", 3, "k", "neighbour", []byte("x")) })
		}
	}
	db = db.Namespace(s.namespace)
	commit(t, db, func(b *Batch) {
		for _, key := range []string{"", "j", "k\x00", "kz", "\xff"} {
			b.SetState("g", 3, key, "neighbour", []byte("x"))
		}
		b.SetState("", 3, "k", "neighbour", []byte("x"))
		b.SetState("g", 2, "k", "neighbour", []byte("x"))
		b.SetState("g", 4, "k", "neighbour", []byte("x"))
	})
	return keyState{db}
}

// crash makes the next store find the data that a power cut now might leave, or, half of the times, all that
// was written: so it is when only the process is killed.
func (s *fixture) crash(random *rand.Rand) {
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: min(random.IntN(201), 100), RNG: random})
}

// keyState is the state of one key in a store.
type keyState struct{ db *DB }

func (s keyState) get(name string) ([]byte, bool, error) { return s.db.GetState("g", 3, "k", name) }

func (s keyState) scan(prefix string, f func(name string, value []byte) bool) error {
	for name, v := range s.db.ScanState("g", 3, "k", prefix) {
		if v.Err != nil || !f(name, v.Bytes) {
			return v.Err
		}
	}
	return nil
}

// op sets a name, or deletes it if the value is nil.
type op struct {
	name  string
	value []byte
}

func (s keyState) apply(sync bool, ops ...op) error {
	return s.db.Write(sync, func(b *Batch) error {
		for _, o := range ops {
			if o.value == nil {
				b.DeleteState("g", 3, "k", o.name)
			} else {
				b.SetState("g", 3, "k", o.name, o.value)
			}
		}
		return nil
	})
}

func (s keyState) mustApply(t *testing.T, sync bool, ops ...op) {
	t.Helper()
	if err := s.apply(sync, ops...); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

// stateNames returns the names of the scanned key of d that begin with prefix, as a scan gives them.
func stateNames(t *testing.T, d *DB, prefix string) (all []string) {
	t.Helper()
	for name, v := range d.ScanState("g", 3, "k", prefix) {
		if v.Err != nil {
			t.Fatal(v.Err)
		}
		all = append(all, name)
	}
	return all
}

// readContent returns what d has: the states of the scanned key, the log of a lane and all positions.
func readContent(t *testing.T, d *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, v := range d.ScanState("g", 3, "k", "") {
		if v.Err != nil {
			t.Fatal(v.Err)
		}
		all["state "+name] = string(v.Bytes)
	}
	begin, end, err := d.Bounds("t", 3)
	if err != nil {
		t.Fatal(err)
	}
	all["bounds"] = fmt.Sprint(begin, end)
	log, err := d.ReadLog("t", 3, 0, 1<<40, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		all[fmt.Sprint("log ", e.Offset)] = e.Record.ID
	}
	positions, err := d.Positions()
	if err != nil {
		t.Fatal(err)
	}
	all["positions"] = fmt.Sprint(positions)
	topics, err := d.Topics()
	if err != nil {
		t.Fatal(err)
	}
	all["topics"] = fmt.Sprint(topics)
	return all
}

// awkwardNames break sloppy key formats.
var awkwardNames = []string{"a", "a\x00", "a\x00\x01", "a\x00\xff", "ab", "a\xff", "a\xff\xff", "b", "\x00", "\xff", "\xff\xff", "\xff\xff\x00", "ü"}

func testMissing(t *testing.T, at *fixture) {
	s := at.open(t)
	s.mustApply(t, true, op{"empty", []byte{}}, op{"full", []byte("x")}, op{"gone", []byte{}}, op{"gone", nil}, op{"never", nil})
	for name, want := range map[string]string{"empty": "", "full": "x"} {
		if v, ok, err := s.get(name); string(v) != want || !ok || err != nil {
			t.Errorf("%s is %q, %v, %v", name, v, ok, err)
		}
	}
	for _, name := range []string{"gone", "never", "other", "ful", "fulll"} {
		if v, ok, err := s.get(name); ok || err != nil {
			t.Errorf("%s is %q, %v, %v", name, v, ok, err)
		}
	}
}

func testScan(t *testing.T, at *fixture) {
	s := at.open(t)
	for _, name := range awkwardNames {
		s.mustApply(t, false, op{name, []byte("value of " + name)})
	}
	for _, prefix := range append([]string{"", "c", "\x00\x00"}, awkwardNames...) {
		var want []string
		for _, name := range awkwardNames {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := stateNames(t, s.db, prefix); !slices.Equal(got, want) {
			t.Errorf("the names with prefix %q are %q, want %q", prefix, got, want)
		}
	}
	for _, name := range awkwardNames {
		if v, ok, err := s.get(name); string(v) != "value of "+name || !ok || err != nil {
			t.Errorf("%q is %q, %v, %v", name, v, ok, err)
		}
	}
}

func testScanMoment(t *testing.T, at *fixture) {
	s := at.open(t)
	s.mustApply(t, false, op{"a", []byte("1")}, op{"b", []byte("1")}, op{"c", []byte("1")})
	var got []string
	err := s.scan("", func(name string, v []byte) bool {
		if name == "a" {
			s.mustApply(t, false, op{"aa", []byte("2")}, op{"b", []byte("2")}, op{"c", nil})
		}
		got = append(got, name+string(v))
		return true
	})
	if want := []string{"a1", "b1", "c1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("a scan during a write saw %v (%v), want %v", got, err, want)
	}
}

func testBrokenOffScan(t *testing.T, at *fixture) {
	s := at.open(t)
	s.mustApply(t, false, op{"a", []byte{}}, op{"b", []byte{}})
	for range 3 {
		calls := 0
		if err := s.scan("", func(string, []byte) bool { calls++; return false }); err != nil || calls != 1 {
			t.Errorf("a scan that was broken off: %d calls, %v", calls, err)
		}
	}
	if err := s.db.Close(); err != nil {
		t.Errorf("Close after scans that were broken off: %v", err)
	}
}

func testCallerOwnsBytes(t *testing.T, at *fixture) {
	s := at.open(t)
	v := []byte("value")
	s.mustApply(t, false, op{"a", v}, op{"b", v})
	clear(v)
	got, _, _ := s.get("a")
	clear(got)
	err := s.scan("", func(_ string, v []byte) bool {
		if string(v) != "value" {
			t.Errorf("a scanned value became %q", v)
		}
		clear(v)
		return true
	})
	if got, _, getErr := s.get("a"); string(got) != "value" || err != nil || getErr != nil {
		t.Errorf("a stored value became %q (%v, %v)", got, err, getErr)
	}
}

// testBatches writes equal values in pairs from several goroutines while others look for a pair that is not equal.
func testBatches(t *testing.T, at *fixture) {
	s := at.open(t)
	s.mustApply(t, false, op{"x", []byte{}}, op{"y", []byte{}})
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 200 {
				v := fmt.Appendf(nil, "%d.%d", w, i)
				if err := s.apply(i%50 == 0, op{"x", v}, op{"y", v}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var values []string
			err := s.scan("", func(_ string, v []byte) bool { values = append(values, string(v)); return true })
			if err != nil || len(values) != 2 || values[0] != values[1] {
				t.Errorf("half a batch is visible: %q (%v)", values, err)
				return
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
}

func testErrClosed(t *testing.T, at *fixture) {
	s := at.open(t)
	for range 2 {
		mustClose(t, s.db)
	}
	_, _, get := s.get("a")
	for what, err := range map[string]error{
		"GetState": get, "ScanState": s.scan("", func(string, []byte) bool { return true }), "Write": s.apply(true, op{"a", nil}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v, want %v", what, err, ErrClosed)
		}
	}
}

func testLargeValue(t *testing.T, at *fixture) {
	if at.dir == "" {
		t.Skip("nothing outlives Close")
	}
	random := rand.New(rand.NewPCG(3, 4))
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	at.open(t).mustApply(t, true, op{"large", want})
	at.crash(random)
	if got, ok, err := at.open(t).get("large"); !bytes.Equal(got, want) || !ok || err != nil {
		t.Errorf("a synced value of 1 MiB came back with %d bytes (%v, %v)", len(got), ok, err)
	}
}

// testRandomBatches compares a store with a map. Until the store is scanned, commits may be gathered. After a
// crash the store holds what the map held at some moment not before the last sync.
func testRandomBatches(t *testing.T, at *fixture) {
	const seed = 20261121
	random := rand.New(rand.NewPCG(seed, 0))
	s := at.open(t)
	now := readContent(t, s.db)
	since := []map[string]string{maps.Clone(now)} // what the store may hold after a crash
	var low, head uint64                          // of the log
	for i := range 600 {
		sync := random.IntN(8) == 0
		write(t, s.db, sync, func(b *Batch) {
			for range random.IntN(5) {
				name := awkwardNames[random.IntN(len(awkwardNames))]
				if random.IntN(3) == 0 {
					b.DeleteState("g", 3, "k", name)
					delete(now, "state "+name)
				} else {
					now["state "+name] = strings.Repeat(fmt.Sprint(i, "."), random.IntN(300))
					b.SetState("g", 3, "k", name, []byte(now["state "+name]))
				}
			}
			now[fmt.Sprint("log ", head)], now["topics"] = fmt.Sprint("m", i), "[t]"
			b.Append("t", 3, head, Record{ID: fmt.Sprint("m", i)})
			head++
			if random.IntN(4) == 0 {
				to := low + random.Uint64N(head-low+1)
				b.Trim("t", 3, low, to)
				b.SetPosition("g", "t", 3, to)
				for ; low < to; low++ {
					delete(now, fmt.Sprint("log ", low))
				}
				now["positions"] = fmt.Sprint([]Position{{"g", "t", 3, to}})
			}
			now["bounds"] = fmt.Sprint(low, head)
		})
		if sync {
			since = nil
		}
		since = append(since, maps.Clone(now))
		for _, name := range awkwardNames {
			want, wantOK := now["state "+name]
			if got, ok, err := s.get(name); string(got) != want || ok != wantOK || err != nil {
				t.Fatalf("seed %d, batch %d: state %q is %q, %v, %v, want %q, %v", seed, i, name, got, ok, err, want, wantOK)
			}
		}
		if random.IntN(15) == 0 && at.dir != "" {
			at.crash(random)
			s = at.open(t)
			now = readContent(t, s.db)
			if !slices.ContainsFunc(since, func(m map[string]string) bool { return maps.Equal(m, now) }) {
				t.Fatalf("seed %d, batch %d: after a crash the store holds none of the %d states that it may", seed, i, len(since))
			}
			since = []map[string]string{maps.Clone(now)}
			low, head, _ = s.db.Bounds("t", 3)
		}
		if random.IntN(10) == 0 {
			if got := readContent(t, s.db); !maps.Equal(got, now) {
				t.Fatalf("seed %d, batch %d: %q, want %q", seed, i, got, now)
			}
		}
	}
}
