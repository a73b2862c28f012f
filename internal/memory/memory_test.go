package memory

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
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
