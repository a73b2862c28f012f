//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// clock is the clock of one directory's processes: it differs from the machine's by what
// stands in a file that the program in test/campaign/stream reads again every 100 ms.
type clock struct {
	file   string
	offset time.Duration
}

// clockVariable names the file to the process.
const clockVariable = "VOKTER_CLOCK_FILE"

// Bounds of all jumps together. Dead letters are kept for 90 days, so that what is given
// up at the beginning can still be replayed at the end.
const (
	minOffset = -12 * time.Hour
	maxOffset = 60 * 24 * time.Hour
)

// jumpNotice is how long before a jump the clock file announces it, so that all processes have read it.
const jumpNotice = 150 * time.Millisecond

// jump sets the clock forth or back by d, for all processes at the same moment: the clocks of machines
// differ by seconds, and what one requests of another two hours before the other's time is not done. It
// reports whether it did: not where that is out of bounds.
func (c *clock) jump(d time.Duration) (bool, error) {
	to := c.offset + d
	if to < minOffset || to > maxOffset {
		return false, nil
	}
	at := time.Now().Add(jumpNotice).Truncate(time.Millisecond)
	if err := c.write(fmt.Sprint(c.offset, " ", to, " ", at.UnixMilli())); err != nil {
		return false, err
	}
	c.offset = to
	time.Sleep(time.Until(at))
	return true, nil
}

func (c *clock) write(setting string) error {
	next := filepath.Join(filepath.Dir(c.file), ".clock")
	if err := os.WriteFile(next, []byte(setting), 0o600); err != nil {
		return fmt.Errorf("the clock: %w", err)
	}
	return os.Rename(next, c.file)
}

// clockJumps are how far clocks are set.
var clockJumps = []time.Duration{2 * time.Hour, -2 * time.Hour, 10 * 24 * time.Hour}
