package engine

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	wall := start
	var log strings.Builder
	woken := 0
	c := Clock{Wall: func() time.Time { return wall }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	c.WakeAll = func() {
		woken++
		if !c.Behind(wall) {
			t.Error("the clock is right before all was woken")
		}
		c.Check() // does nothing while this one wakes
	}
	if c.Behind(start) {
		t.Error("a clock that has seen no time is behind")
	}
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("it is %v, want %v", now, start)
	}
	c.See(start.Add(-time.Hour)) // is not later
	wall = start.Add(-SetBack)
	if c.CheckedNow(); woken != 0 {
		t.Errorf("all was woken after the clock was set back by no more than %v", SetBack)
	}
	wall = start.Add(-SetBack - time.Second)
	c.CheckedNow()
	c.CheckedNow()
	if woken != 1 {
		t.Errorf("all was woken %d times, want 1", woken)
	}
	if want := "from=" + start.Format("2006-01-02T15:04:05.000Z"); !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q in it", log.String(), want)
	}
	if c.Behind(wall) {
		t.Error("it is behind after all was woken")
	}
}
