package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// clock is the clock of one directory's process: it differs from the machine's by what
// stands in a file that the program in test/campaign/stream reads again and again.
type clock struct {
	file   string
	offset time.Duration
}

// clockVariable names the file to the process.
const clockVariable = "VOKTER_CLOCK_FILE"

// Bounds of all jumps together. Dead letters are kept for 90 days, so that what is given
// up at the beginning can still be replayed at the end.
const (
	earliest = -12 * time.Hour
	latest   = 60 * 24 * time.Hour
)

// jump sets the clock forth or back by d. It reports whether it did: not where that is out
// of bounds.
func (c *clock) jump(d time.Duration) (bool, error) {
	if to := c.offset + d; to < earliest || to > latest {
		return false, nil
	}
	c.offset += d
	return true, c.write()
}

func (c *clock) write() error {
	next := filepath.Join(filepath.Dir(c.file), ".clock")
	if err := os.WriteFile(next, []byte(c.offset.String()), 0o600); err != nil {
		return fmt.Errorf("the clock: %w", err)
	}
	return os.Rename(next, c.file)
}

// jumps are how far clocks are set.
var jumps = []time.Duration{2 * time.Hour, -2 * time.Hour, 10 * 24 * time.Hour}
