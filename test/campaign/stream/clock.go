package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fileClock returns a clock that is set by file. The file is read again every 100 ms.
func fileClock(file string) func() time.Time {
	var (
		mu   sync.Mutex
		read time.Time
		s    clockSetting
	)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(read) >= 100*time.Millisecond {
			read = now
			if b, err := os.ReadFile(file); err == nil { // otherwise the earlier setting stays
				if next, err := parseSetting(string(b)); err == nil {
					s = next
				}
			}
		}
		return s.at(now)
	}
}

// clockSetting says how a clock differs from the machine's.
type clockSetting struct {
	offset time.Duration
	// next is the offset from a time on; a zero until means that there is none.
	next  time.Duration
	until time.Time
	// rate is how many times as fast as the machine's clock it runs from since on; 0 means as fast.
	rate  int
	since time.Time
}

// parseSetting reads the text of a clock file: "OFFSET" is a duration, such as 2h, that is added to
// the machine's clock. With "OFFSET NEXT UNTIL" it is NEXT from UNTIL on, so that several processes jump
// at the same moment. With "OFFSET RATE SINCE" the clock also runs RATE times as fast as the machine's from
// SINCE on. UNTIL and SINCE are in milliseconds since 1970.
func parseSetting(text string) (clockSetting, error) {
	var s clockSetting
	fields := strings.Fields(text)
	if len(fields) != 1 && len(fields) != 3 {
		return s, fmt.Errorf("clock: want OFFSET, OFFSET NEXT UNTIL or OFFSET RATE SINCE, not %q", text)
	}
	var err error
	if s.offset, err = time.ParseDuration(fields[0]); err != nil || len(fields) == 1 {
		return s, err
	}
	ms, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return s, fmt.Errorf("clock: %q does not end with milliseconds: %w", text, err)
	}
	if s.rate, err = strconv.Atoi(fields[1]); err == nil && s.rate > 0 {
		s.since = time.UnixMilli(ms)
		return s, nil
	}
	if s.next, err = time.ParseDuration(fields[1]); err != nil || fields[1] == "0" {
		return s, fmt.Errorf("clock: %q has neither NEXT with a unit nor a RATE of at least 1", text)
	}
	s.until = time.UnixMilli(ms)
	return s, nil
}

// at returns what the clock shows when the machine's shows now.
func (s clockSetting) at(now time.Time) time.Time {
	now = now.Round(0)
	if !s.until.IsZero() && !now.Before(s.until) {
		return now.Add(s.next)
	}
	if fast := now.Sub(s.since); s.rate > 1 && fast > 0 {
		now = s.since.Add(fast * time.Duration(s.rate))
	}
	return now.Add(s.offset)
}
