package sinks

import (
	"testing"
	"time"

	"github.com/vokter/vokter/test/txtest"
)

// TestBacklogOfOthers gives a receiver away, and takes it back: meanwhile nobody here waits
// for it.
func TestBacklogOfOthers(t *testing.T) {
	owned := map[string]bool{"a": true, "b": true}
	d := NewDelivery(Config{Owned: func(r string) bool { return owned[r] }, Hand: func(Attempt) {}})
	for _, r := range []string{"a", "b"} {
		store := txtest.New()
		for _, id := range []string{r + "1", r + "2"} {
			if err := store.Handle(t.Context(), d, notification(t, r, "", id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		a    bool
		want int
	}{{true, 4}, {false, 2}, {true, 4}} {
		owned["a"] = c.a
		if due, parked := d.Backlog(time.Minute); due != c.want || parked != 0 {
			t.Errorf("a owned %v: %d due and %d parked, want %d due", c.a, due, parked, c.want)
		}
	}
}
