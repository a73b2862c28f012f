// Package schedule computes when a page is due. Its functions are pure. A hash of the key
// spreads pages over time.
package schedule

import (
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// Late is by how much a page may be late without counting as overdue.
	Late = 15 * time.Second
	// CatchUp is the longest time over which overdue pages are spread.
	CatchUp = time.Minute
	// Jitter is over how much time the checks of pages are spread that are due in the same minute.
	Jitter = 50 * time.Second
)

// Adapt returns the time between two checks of a page, from the one before (0 if there is none) and
// whether the last check found a change. It is between least and most. A change halves it, and each
// check without one adds a quarter: so there are about four checks for each change of a page that
// changes regularly.
func Adapt(pace time.Duration, changed bool, least, most time.Duration) time.Duration {
	if pace = min(pace, most); changed {
		pace /= 2
	} else {
		pace += pace / 4
	}
	return min(max(pace, least), most)
}

// Offset returns the part of d that belongs to page: 0 <= Offset < d, evenly spread over
// pages and always the same for one. It is 0 where d is not positive.
func Offset(page string, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	hi, _ := bits.Mul64(xxhash.Sum64String(page), uint64(d))
	return time.Duration(hi)
}

// Second returns when page is due for its second check. The first was requested at asked. The
// second follows after at least gap and at most interval, depending on the page, so that pages
// that started together spread out. If gap is at least interval, it follows exactly one
// interval later.
func Second(page string, asked time.Time, interval, gap time.Duration) time.Time {
	gap = min(gap, interval)
	return asked.Add(gap + Offset(page, interval-gap))
}

// Next returns when a page is due again whose last check was due at due, was requested at asked
// and ended at now. It is the first of due, due+interval, due+2*interval ... that is after now
// and at least gap after asked. So a late check does not shift later ones, and pages that were
// late together spread out again. A tenth of gap is tolerated, because wakes are not exact. If
// interval is not positive, Next returns now.
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

// Overdue reports whether a page that was due at due is overdue at now, as all pages are after
// a pause of the process. It also returns when to check the page: within min(interval,
// CatchUp), spread by its hash, and not all pages at once.
func Overdue(page string, due, now time.Time, interval time.Duration) (time.Time, bool) {
	if now.Sub(due) <= Late {
		return time.Time{}, false
	}
	return now.Add(Offset(page, min(interval, CatchUp))), true
}
