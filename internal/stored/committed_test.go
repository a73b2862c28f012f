package stored_test

import (
	"testing"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/test/txtest"
)

func TestOnlyWhatIsCommittedCounts(t *testing.T) {
	c, s := stored.NewCommitted[int](1000), txtest.New()
	expect := func(epoch uint64, want int) {
		t.Helper()
		if got, ok := c.Get("k", epoch); ok != (want > 0) || got != want {
			t.Errorf("epoch %d: got %d, %v; want %d", epoch, got, ok, want)
		}
	}
	expect(1, 0)
	first := s.Begin()
	c.Put(first, "k", 1, 1, 10)
	expect(1, 0)
	first.Commit()
	expect(1, 1)
	expect(2, 0)
	c.Put(s.Begin(), "k", 1, 2, 10) // is never committed
	expect(1, 0)

	early, late := s.Begin(), s.Begin()
	c.Put(early, "k", 1, 3, 10)
	c.Put(late, "k", 1, 4, 10)
	early.Commit()
	expect(1, 0)
	late.Commit()
	expect(1, 4)
	c.Drop("k")
	expect(1, 0)
	if got := c.Bytes(); got != 0 {
		t.Errorf("nothing takes %d bytes", got)
	}
}
