package engine

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	var c Clock
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	if c.Behind(start) {
		t.Error("a clock that has seen no time is behind")
	}
	c.See(start)
	c.See(start.Add(-time.Hour)) // is not later
	var from []time.Time
	check := func(now time.Time) {
		c.Check(now, func(at time.Time) {
			from = append(from, at)
			if !c.Behind(now) {
				t.Error("the clock is right before all was woken")
			}
			c.Check(now, func(time.Time) { t.Error("it is checked twice at a time") })
		})
	}
	check(start.Add(-SetBack))
	if len(from) != 0 {
		t.Errorf("it was set back by no more than %v, and %v is told", SetBack, from)
	}
	back := start.Add(-SetBack - time.Second)
	check(back)
	check(back)
	if len(from) != 1 || !from[0].Equal(start) {
		t.Errorf("it was set back from %v, want %v once", from, start)
	}
	if c.Behind(back) {
		t.Error("it is behind after all was woken")
	}
}
