package memory

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
)

// TestBudget: what is large waits in order until there is room, and what is small never does.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(6400)
		ctx := t.Context()
		take := func(n int64) func() {
			free, err := b.Take(ctx, n)
			if err != nil {
				t.Fatal(err)
			}
			return free
		}
		freeFirst, freeSecond := take(4000), take(2000)
		var got []string
		wait := func(name string, n int64) {
			go func() {
				free := take(n)
				got = append(got, name)
				free()
			}()
			synctest.Wait()
		}
		wait("all", math.MaxInt64)
		wait("fits, but came later", 400)
		take(99)() // a small one
		take(0)()
		if len(got) > 0 {
			t.Fatalf("%q did not wait", got)
		}
		freeFirst()
		synctest.Wait()
		if len(got) > 0 {
			t.Fatalf("%q did not wait for the second", got)
		}
		freeSecond()
		synctest.Wait()
		if len(got) != 2 || got[0] != "all" {
			t.Errorf("got %q, want both in order", got)
		}
	})
}

func TestBudgetGivesUp(t *testing.T) {
	b := NewBudget(100)
	free, err := b.Take(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := b.Take(ctx, 50); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	free()
	free, err = b.Take(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	free()
}

// TestLimit: GOMEMLIMIT, which is what the runtime's memory limit is at the start, bounds what
// may be used; and Heed leaves it alone where the operator set it.
func TestLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	before := Limit()
	if before <= 0 || before > 1<<40 {
		t.Fatalf("the limit is %d", before)
	}
	debug.SetMemoryLimit(100 << 20)
	if got := Limit(); got != 100<<20 {
		t.Errorf("the limit is %d, want what the runtime has", got)
	}
	t.Setenv("GOMEMLIMIT", "100MiB")
	Heed()
	if got := debug.SetMemoryLimit(-1); got != 100<<20 {
		t.Errorf("the runtime's limit became %d", got)
	}
}

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]uint64{0: 400, 10 << 20: 400, 32 << 20: 200, 50 << 20: 125, 64 << 20: 100, 1 << 40: 100} {
		if got := gcPercentFor(live); got != want {
			t.Errorf("a heap with %d live bytes may grow by %d %%, want %d", live, got, want)
		}
	}
}

// TestPace: a small heap is collected less often, a large one as usual, and GOGC is heeded.
func TestPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	t.Setenv("GOGC", "77")
	Pace()
	if got := gcPercent(); got != 77 {
		t.Fatalf("GOGC=77 was replaced by %d", got)
	}
	t.Setenv("GOGC", "")
	Pace()
	for gcPercent() != maxGCPercent {
		runtime.GC()
		runtime.Gosched()
	}
	large := make([]byte, 2*minHeapGrowth)
	for gcPercent() != minGCPercent {
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(large)
}

func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2)
		var mu sync.Mutex
		ran := 0
		hold := make(chan struct{})
		for range 5 { // all at once, though only two are kept
			p.Go(func() {
				mu.Lock()
				ran++
				mu.Unlock()
				<-hold
			})
		}
		synctest.Wait()
		if ran != 5 {
			t.Errorf("%d of 5 functions run while none has ended", ran)
		}
		close(hold)
		synctest.Wait()
		if got := p.idle.Load(); got != 2 {
			t.Errorf("%d goroutines wait, want 2", got)
		}
		for range 10 {
			p.Go(func() { ran++ })
			synctest.Wait()
		}
		if ran != 15 {
			t.Errorf("%d functions ran, want 15", ran)
		}
		p.Close()
		synctest.Wait()
		p.Go(func() { ran++ })
		synctest.Wait() // the bubble fails where a goroutine is left over
		if ran != 16 {
			t.Error("a function was lost after Close")
		}
	})
}
