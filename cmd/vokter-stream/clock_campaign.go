//go:build campaign

package main

import (
	"os"
	"strings"
	"sync"
	"time"
)

// clock returns a clock that differs from the machine's by the duration that stands in
// the file named by VOKTER_CLOCK_FILE, which is read again every 100 ms: for programs that
// try what happens when clocks jump.
func clock() func() time.Time {
	file := os.Getenv("VOKTER_CLOCK_FILE")
	if file == "" {
		return nil
	}
	var (
		mu     sync.Mutex
		read   time.Time
		offset time.Duration
	)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(read) >= 100*time.Millisecond {
			read = now
			if b, err := os.ReadFile(file); err == nil { // what stood there before goes on
				if d, err := time.ParseDuration(strings.TrimSpace(string(b))); err == nil {
					offset = d
				}
			}
		}
		return now.Add(offset).Round(0)
	}
}
