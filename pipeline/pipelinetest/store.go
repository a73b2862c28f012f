package pipelinetest

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
)

// Store is what TestStore tests: values by name, written in batches.
type Store interface {
	Get(name string) (value []byte, ok bool, err error)
	// Scan calls f with the names that begin with prefix, in the order of their bytes,
	// until it returns false.
	Scan(prefix string, f func(name string, value []byte) bool) error
	// Apply applies all ops in order, or none. With sync they survive a crash.
	Apply(sync bool, ops ...Op) error
	Close() error
}

// Op sets a name, or deletes it if Delete is set.
type Op struct {
	Name   string
	Value  []byte
	Delete bool
}

// StoreSite is a place where stores keep their data, one store at a time.
type StoreSite interface {
	Open(t *testing.T) Store
	// Crash makes the next store find the data that a power cut now might leave. The test
	// closes the current store.
	Crash(random *rand.Rand)
}

// StoreFeatures are the promises of a store beyond the interface.
type StoreFeatures struct {
	// ErrClosed is the error after Close.
	ErrClosed error
	// Volatile says that nothing outlives Close.
	Volatile bool
}

// awkward are names that break sloppy key formats.
var awkward = []string{"a", "a\x00", "a\x00\x01", "a\x00\xff", "ab", "a\xff", "a\xff\xff", "b", "\x00", "\xff", "\xff\xff", "\xff\xff\x00", "ü"}

// TestStore tests the properties of a store on which a transport's state relies.
func TestStore(t *testing.T, f StoreFeatures, site func(t *testing.T) StoreSite) {
	tests := []struct {
		name     string
		outlives bool
		test     func(t *testing.T, f StoreFeatures, s StoreSite)
	}{
		{"MissingIsNotEmpty", false, testMissing},
		{"ScanIsExactAndOrdered", false, testScan},
		{"ScanSeesOneMoment", false, testScanMoment},
		{"BrokenOffScan", false, testBrokenOffScan},
		{"CallerOwnsBytes", false, testCallerOwnsBytes},
		{"LastOperationWins", false, testLastWins},
		{"BatchesAreAtomic", false, testBatches},
		{"ErrClosed", false, testErrClosed},
		{"LargeValueSurvivesCrash", true, testLargeValue},
		{"RandomBatchesAndCrashes", true, testRandomBatches},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.outlives && f.Volatile {
				t.Skip("nothing outlives Close")
			}
			test.test(t, f, site(t))
		})
	}
}

func mustApply(t *testing.T, s Store, sync bool, ops ...Op) {
	t.Helper()
	if err := s.Apply(sync, ops...); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

// namesOf scans.
func namesOf(t *testing.T, s Store, prefix string) []string {
	t.Helper()
	var names []string
	if err := s.Scan(prefix, func(name string, _ []byte) bool { names = append(names, name); return true }); err != nil {
		t.Fatalf("Scan(%q): %v", prefix, err)
	}
	return names
}

func testMissing(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	mustApply(t, s, true, Op{Name: "empty"}, Op{Name: "full", Value: []byte("x")}, Op{Name: "gone"}, Op{Name: "gone", Delete: true}, Op{Name: "never", Delete: true})
	for name, want := range map[string]string{"empty": "", "full": "x"} {
		if v, ok, err := s.Get(name); string(v) != want || !ok || err != nil {
			t.Errorf("Get(%s) = %q, %v, %v", name, v, ok, err)
		}
	}
	for _, name := range []string{"gone", "never", "other", "ful", "fulll"} {
		if v, ok, err := s.Get(name); ok || err != nil {
			t.Errorf("Get(%s) = %q, %v, %v", name, v, ok, err)
		}
	}
}

func testScan(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	for _, name := range awkward {
		mustApply(t, s, false, Op{Name: name, Value: []byte("value of " + name)})
	}
	for _, prefix := range append([]string{"", "c", "\x00\x00"}, awkward...) {
		var want []string
		for _, name := range awkward {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := namesOf(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("Scan(%q) = %q, want %q", prefix, got, want)
		}
	}
	for _, name := range awkward {
		if v, ok, err := s.Get(name); string(v) != "value of "+name || !ok || err != nil {
			t.Errorf("Get(%q) = %q, %v, %v", name, v, ok, err)
		}
	}
}

func testScanMoment(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	mustApply(t, s, false, Op{Name: "a", Value: []byte("1")}, Op{Name: "b", Value: []byte("1")}, Op{Name: "c", Value: []byte("1")})
	var got []string
	err := s.Scan("", func(name string, v []byte) bool {
		if name == "a" {
			mustApply(t, s, false, Op{Name: "aa", Value: []byte("2")}, Op{Name: "b", Value: []byte("2")}, Op{Name: "c", Delete: true})
		}
		got = append(got, name+string(v))
		return true
	})
	if want := []string{"a1", "b1", "c1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("a scan during a write saw %v (%v), want %v", got, err, want)
	}
}

func testBrokenOffScan(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	mustApply(t, s, false, Op{Name: "a"}, Op{Name: "b"})
	for range 3 {
		calls := 0
		if err := s.Scan("", func(string, []byte) bool { calls++; return false }); err != nil || calls != 1 {
			t.Errorf("a scan that was broken off: %d calls, %v", calls, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close after scans that were broken off: %v", err)
	}
}

func testCallerOwnsBytes(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	v := []byte("value")
	mustApply(t, s, false, Op{Name: "a", Value: v}, Op{Name: "b", Value: v})
	clear(v)
	got, _, _ := s.Get("a")
	clear(got)
	var scanned [][]byte
	if err := s.Scan("", func(_ string, v []byte) bool { scanned = append(scanned, v); return true }); err != nil {
		t.Fatal(err)
	}
	for _, v := range scanned {
		if string(v) != "value" {
			t.Errorf("a scanned value became %q", v)
		}
		clear(v)
	}
	if got, _, err := s.Get("a"); string(got) != "value" || err != nil {
		t.Errorf("a stored value became %q (%v)", got, err)
	}
}

func testLastWins(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	mustApply(t, s, false, Op{Name: "a", Value: []byte("1")}, Op{Name: "a", Delete: true}, Op{Name: "a", Value: []byte("2")},
		Op{Name: "b", Value: []byte("1")}, Op{Name: "b", Delete: true})
	if v, ok, err := s.Get("a"); string(v) != "2" || !ok || err != nil {
		t.Errorf("set, deleted, set: %q, %v, %v", v, ok, err)
	}
	if v, ok, err := s.Get("b"); ok || err != nil {
		t.Errorf("set, deleted: %q, %v, %v", v, ok, err)
	}
}

// testBatches writes equal values in pairs from several goroutines while others look
// for a pair that is not equal.
func testBatches(t *testing.T, _ StoreFeatures, site StoreSite) {
	s := site.Open(t)
	mustApply(t, s, false, Op{Name: "x"}, Op{Name: "y"})
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 200 {
				v := fmt.Appendf(nil, "%d.%d", w, i)
				if err := s.Apply(i%50 == 0, Op{Name: "x", Value: v}, Op{Name: "y", Value: v}); err != nil {
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
			var values [][]byte
			if err := s.Scan("", func(_ string, v []byte) bool { values = append(values, v); return true }); err != nil {
				t.Error(err)
				return
			}
			if len(values) != 2 || !bytes.Equal(values[0], values[1]) {
				t.Errorf("half a batch is visible: %q", values)
				return
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
}

func testErrClosed(t *testing.T, f StoreFeatures, site StoreSite) {
	s := site.Open(t)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, _, get := s.Get("a")
	for what, err := range map[string]error{
		"Get": get, "Scan": s.Scan("", func(string, []byte) bool { return true }), "Apply": s.Apply(true, Op{Name: "a"}),
	} {
		if !errors.Is(err, f.ErrClosed) {
			t.Errorf("%s after Close: %v, want %v", what, err, f.ErrClosed)
		}
	}
}

func testLargeValue(t *testing.T, _ StoreFeatures, site StoreSite) {
	random := rand.New(rand.NewPCG(3, 4))
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	s := site.Open(t)
	mustApply(t, s, true, Op{Name: "large", Value: want})
	site.Crash(random)
	s.Close() // what it says about a file system that is gone does not matter
	if got, ok, err := site.Open(t).Get("large"); !bytes.Equal(got, want) || !ok || err != nil {
		t.Errorf("a synced value of 1 MiB came back with %d bytes (%v, %v)", len(got), ok, err)
	}
}

// testRandomBatches compares a store with a map. After a crash it holds what the map
// held at some moment not before the last sync.
func testRandomBatches(t *testing.T, _ StoreFeatures, site StoreSite) {
	const seed = 20261121
	random := rand.New(rand.NewPCG(seed, 0))
	s := site.Open(t)
	now := map[string]string{}
	since := []map[string]string{maps.Clone(now)} // what the store may hold after a crash
	for i := range 300 {
		var ops []Op
		for range 1 + random.IntN(5) {
			op := Op{Name: awkward[random.IntN(len(awkward))], Delete: random.IntN(3) == 0}
			if op.Delete {
				delete(now, op.Name)
			} else {
				op.Value = []byte(strings.Repeat(fmt.Sprint(i, "."), random.IntN(300)))
				now[op.Name] = string(op.Value)
			}
			ops = append(ops, op)
		}
		sync := random.IntN(4) == 0
		mustApply(t, s, sync, ops...)
		if sync {
			since = nil
		}
		since = append(since, maps.Clone(now))
		if random.IntN(15) == 0 {
			site.Crash(random)
			s.Close()
			s = site.Open(t)
			now = contents(t, s)
			if !slices.ContainsFunc(since, func(m map[string]string) bool { return maps.Equal(m, now) }) {
				t.Fatalf("seed %d, batch %d: after a crash the store holds none of the %d states that it may", seed, i, len(since))
			}
			since = []map[string]string{maps.Clone(now)}
		}
		if got := contents(t, s); !maps.Equal(got, now) {
			t.Fatalf("seed %d, batch %d: %q, want %q", seed, i, got, now)
		}
	}
}

func contents(t *testing.T, s Store) map[string]string {
	t.Helper()
	m := map[string]string{}
	if err := s.Scan("", func(name string, v []byte) bool { m[name] = string(v); return true }); err != nil {
		t.Fatal(err)
	}
	return m
}
