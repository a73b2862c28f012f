// Package schedule says when a page is due. Its functions are pure: times go in and
// times come out, and what spreads pages is a hash of their keys.
package schedule

import (
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// Late is by how much a page may be late without being called overdue.
	Late = 15 * time.Second
	// CatchUp is over how much time overdue pages are spread at most.
	CatchUp = time.Minute
)

// Offset returns the part of d that belongs to page: 0 <= Offset < d, evenly spread over
// pages and always the same for one. It is 0 where d is not positive.
func Offset(page string, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	hi, _ := bits.Mul64(xxhash.Sum64String(page), uint64(d))
	return time.Duration(hi)
}

// Second returns when page is due after its first check, which was asked for at asked:
// somewhere between gap and interval later, so that pages that began together part.
// With a gap of interval and more it is exactly one interval later.
func Second(page string, asked time.Time, interval, gap time.Duration) time.Time {
	gap = min(gap, interval)
	return asked.Add(gap + Offset(page, interval-gap))
}

// Next returns when a page is due that was due at due, was asked for at asked and is
// through with it at now: the first of due, due+interval, due+2*interval ... that lies
// behind now and at least gap behind asked. So a late check does not move those behind it,
// and what chance brought together parts again. A tenth of gap is allowed for, since wakes
// are never exact. With an interval of 0 or less it is now.
func Next(due, asked, now time.Time, interval, gap time.Duration) time.Time {
	if interval <= 0 {
		return now
	}
	least := asked.Add(gap - gap/10)
	if !least.After(now) {
		least = now.Add(1)
	}
	if behind := least.Sub(due); behind > 0 {
		due = due.Add((behind + interval - 1) / interval * interval)
	}
	return due
}

// Overdue reports whether a page that was due at due is overdue at now, as all pages are
// after a pause of the process, and when to check it instead of at once: within
// min(interval, CatchUp), spread by its hash.
func Overdue(page string, due, now time.Time, interval time.Duration) (time.Time, bool) {
	if now.Sub(due) <= Late {
		return time.Time{}, false
	}
	return now.Add(Offset(page, min(interval, CatchUp))), true
}
