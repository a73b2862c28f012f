package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// clock is the simulated clock. The process reads it from a file, see test/campaign/stream.
type clock struct {
	file string

	mu    sync.Mutex
	rate  int // 0 while it shows the machine's time
	since time.Time
}

func newClock(dir string) *clock { return &clock{file: filepath.Join(dir, "clock")} }

// speedUp makes the clock run rate times as fast as the machine's, from 200 ms after the call.
func (c *clock) speedUp(rate int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The process reads the file every 100 ms; neither clock must jump.
	c.rate, c.since = rate, time.UnixMilli(time.Now().Add(200*time.Millisecond).UnixMilli())
	text := fmt.Sprintf("0s %d %d", c.rate, c.since.UnixMilli())
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return fmt.Errorf("the clock: %w", err)
	}
	return os.Rename(next, c.file)
}

// now returns the simulated time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Round(0)
	if fast := now.Sub(c.since); c.rate > 0 && fast > 0 {
		return c.since.Add(fast * time.Duration(c.rate))
	}
	return now
}
