package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is what was seen in a day.
type report struct {
	options             options
	first               sample
	samples             []sample
	checks, failed, cpu float64
	dead, unhandled     float64
	pages               pagesVerdict
	receivers           receiverVerdict
}

// hourSummary sums up the samples of one pass over all pages.
type hourSummary struct {
	heap, resident, store, changes float64
}

// hours returns one hour for each whole pass. Its heap is the lowest, right after a collection; the
// rest is as it was at the end.
func (r *report) hours() []hourSummary {
	var hs []hourSummary
	for _, s := range r.samples {
		if int(s.at/interval) >= len(hs) {
			hs = append(hs, hourSummary{heap: s.heap})
		}
		h := &hs[len(hs)-1]
		h.heap = min(h.heap, s.heap)
		h.resident, h.store, h.changes = s.resident, s.store, s.changes
	}
	return hs[:min(len(hs), int(r.options.length/interval))]
}

// slope is how much the values grow from one to the next, by least squares.
func slope(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	var x, y, xy, xx float64
	for i, v := range values {
		t := float64(i)
		x, y, xy, xx = x+t, y+v, xy+t*v, xx+t*t
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// afterWarmUp returns one value of each hour after the first two passes, which fill caches.
func afterWarmUp(hs []hourSummary, value func(hourSummary) float64) (vs []float64) {
	for _, h := range hs[min(len(hs), 2):] {
		vs = append(vs, value(h))
	}
	return vs
}

func heapOf(h hourSummary) float64     { return h.heap }
func residentOf(h hourSummary) float64 { return h.resident }

const mb = 1 << 20

// maxOverdueMetric is the largest number of overdue pages that the metric showed.
func (r *report) maxOverdueMetric() (most float64) {
	for _, s := range r.samples {
		most = max(most, s.overdue)
	}
	return most
}

// passSummaries returns the summaries of the second and of the tenth pass, or the last one, and its number.
func (r *report) passSummaries() (second, later hourSummary, n int) {
	hs := r.hours()
	n = min(10, len(hs))
	return hs[min(1, n-1)], hs[n-1], n
}

func (r *report) String() string {
	var s strings.Builder
	hs := r.hours()
	seconds := r.options.length.Seconds() / float64(r.options.rate)
	fmt.Fprintf(&s, "seed %d: %d pages on %d hosts, %d receivers, %v of simulated time in %.0f s\n",
		r.options.seed, r.options.pages, r.options.hosts, r.options.receivers, r.options.length, seconds)
	fmt.Fprintf(&s, "checks: %.0f, %.0f a second, %.0f of them failed, %d requests hung, %d failed unread; %.2f ms of processor time each\n",
		r.checks, r.checks/seconds, r.failed, r.pages.hung, r.pages.failedUnread, 1000*r.cpu/r.checks)
	fmt.Fprintf(&s, "overdue pages: %d (the metric showed %.0f at most); the longest time between two checks: %v\n",
		r.pages.overdue, r.maxOverdueMetric(), r.pages.longest.Round(time.Minute))
	fmt.Fprintf(&s, "changes: %d told of %d due; %d attempts refused or stalled, %d repeated, %d wrong, %.0f dead letters\n",
		r.receivers.told, r.receivers.due, r.receivers.refused, r.receivers.repeats, len(r.receivers.wrong), r.dead)
	fmt.Fprintf(&s, "dormant: %d notifications, recovered: %d; health events: %s\n", r.receivers.timeouts, r.receivers.recovered, formatCounts(r.receivers.events))
	fmt.Fprintf(&s, "heap: %s MB by hour, slope %.2f MB an hour after the second; resident slope %.2f MB an hour, %.0f MB in the end\n",
		formatMB(hs, heapOf), slope(afterWarmUp(hs, heapOf))/mb, slope(afterWarmUp(hs, residentOf))/mb, hs[len(hs)-1].resident/mb)
	second, later, n := r.passSummaries()
	fmt.Fprintf(&s, "store: %s MB by hour; pass 2 to %d: %.1f MB more with %.0f more versions\n",
		formatMB(hs, func(h hourSummary) float64 { return h.store }), n, (later.store-second.store)/mb, later.changes-second.changes)
	return s.String()
}

func formatMB(hs []hourSummary, value func(hourSummary) float64) string {
	var vs []string
	for _, h := range hs {
		vs = append(vs, fmt.Sprintf("%.0f", value(h)/mb))
	}
	return strings.Join(vs, " ")
}

func formatCounts(of map[string]int) string {
	if len(of) == 0 {
		return "none"
	}
	var all []string
	for _, event := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s %d", event, of[event]))
	}
	return strings.Join(all, ", ")
}

// faults says what was not as it must be.
func (r *report) faults() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if r.pages.overdue > 0 {
		fault("%d pages were overdue: %s", r.pages.overdue, strings.Join(r.pages.first, "; "))
	}
	if n := r.maxOverdueMetric(); n > 0 {
		fault("vokter_overdue_pages showed %.0f", n)
	}
	if r.pages.untaken > 0 {
		fault("the last version of %d pages was not read in time", r.pages.untaken)
	}
	if n := len(r.receivers.missing); n > 0 {
		fault("%d changes were not told, first: %s", n, r.receivers.missing[0])
	}
	if n := len(r.receivers.wrong); n > 0 {
		fault("%d notifications were wrong, first: %s", n, r.receivers.wrong[0])
	}
	if r.dead > 0 || r.unhandled > 0 {
		fault("%.0f dead letters, %.0f messages that could not be handled", r.dead, r.unhandled)
	}
	if r.receivers.due == 0 && r.options.change > 0 {
		fault("nothing changed, so nothing was tested")
	}
	hs := r.hours()
	if most := max(mb, 0.01*hs[len(hs)-1].heap); len(hs) >= 6 && slope(afterWarmUp(hs, heapOf)) > most {
		fault("the heap grows by %.2f MB an hour, want at most %.2f", slope(afterWarmUp(hs, heapOf))/mb, most/mb)
	}
	second, later, n := r.passSummaries()
	if grown, most := later.store-second.store, (later.changes-second.changes)*versionSize+storeSlack; grown > most {
		fault("the store grew by %.1f MB from pass 2 to %d, want at most %.1f", grown/mb, n, most/mb)
	}
	return faults
}

const (
	// versionSize is how much a version of a page of 8 KB may take in the store.
	versionSize = 8 << 10
	// storeSlack is by how much the size of the store may vary, by what is not compacted yet.
	storeSlack = 64 * mb
)
