package restless

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestManyPlaces has a block of 60,000 numbers that all change. It would take long if each of them looked at all
// others.
func TestManyPlaces(t *testing.T) {
	text := func(first int) string {
		var b strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&b, "w%d ", first+i)
		}
		return b.String()
	}
	var table Table
	var l Lesson
	for check := range uint64(3) {
		l = table.Learn(text(int(check)*100_000), text(int(check+1)*100_000), check+1, time.Second)
	}
	if n := len(table.Entries); n > MaxPlaces {
		t.Errorf("the table has %d entries, want %d at most", n, MaxPlaces)
	}
	if l.Began.Count != MaxPlaces || l.Began.Whole {
		t.Errorf("%d places began to be restless, and nothing else changes: %v", l.Began.Count, l.Began.Whole)
	}
}
