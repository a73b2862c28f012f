package main

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDay lets a short day pass with few pages, which finds that the command itself works.
var length = flag.Duration("day.for", 0, "how much simulated time TestDay lets pass, 3h or more")

func TestDay(t *testing.T) {
	if *length == 0 {
		t.Skip("it builds the binary, and takes some seconds; -day.for=3h")
	}
	o := options{pages: 100, hosts: 50, receivers: 10, rate: 1000, length: *length, change: 0.2, seed: 1, first: time.Minute, dir: t.TempDir()}
	r, err := day(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", r)
	// At this rate a busy machine alone can make a check late.
	faults := slices.DeleteFunc(r.faults(), func(f string) bool { return strings.Contains(f, "overdue") })
	if len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
	if r.pages.hung == 0 || r.receivers.due == 0 {
		t.Errorf("%d requests hung and %d changes were due, want some of both", r.pages.hung, r.receivers.due)
	}
}

// TestFaults holds that each kind of fault is noticed.
func TestFaults(t *testing.T) {
	flat := func() *report {
		r := &report{options: options{pages: 10, length: 10 * interval, change: 0.01}, receivers: receiverVerdict{due: 3, told: 3}}
		for n := range 10 {
			r.samples = append(r.samples, sample{at: time.Duration(n) * interval, heap: 50 * mb, store: 100 * mb, changes: float64(n)})
		}
		return r
	}
	if faults := flat().faults(); len(faults) > 0 {
		t.Errorf("a day without faults: %q", faults)
	}
	for want, spoil := range map[string]func(*report){
		"1 pages were overdue":            func(r *report) { r.pages.overdue = 1 },
		"vokter_overdue_pages showed 2":   func(r *report) { r.samples[4].overdue = 2 },
		"the last version of 1 pages":     func(r *report) { r.pages.untaken = 1 },
		"1 changes were not told":         func(r *report) { r.receivers.missing = []string{"page 1: version 2"} },
		"1 notifications were wrong":      func(r *report) { r.receivers.wrong = []string{"page 1"} },
		"1 dead letters":                  func(r *report) { r.dead = 1 },
		"nothing changed":                 func(r *report) { r.receivers.due = 0 },
		"the heap grows by 2.00 MB":       func(r *report) { growSamples(r, func(s *sample, n float64) { s.heap += 2 * mb * n }) },
		"the store grew by 80.0 MB from ": func(r *report) { growSamples(r, func(s *sample, n float64) { s.store += 10 * mb * n }) },
	} {
		r := flat()
		spoil(r)
		if faults := r.faults(); len(faults) != 1 || !strings.HasPrefix(faults[0], want) {
			t.Errorf("faults %q, want one that begins with %q", faults, want)
		}
	}
}

func growSamples(r *report, by func(s *sample, n float64)) {
	for n := range r.samples {
		by(&r.samples[n], float64(n))
	}
}

func TestPagesDifferInOneParagraph(t *testing.T) {
	one, two := pageHTML(7, 1), pageHTML(7, 2)
	if len(one) < 8000 || len(one) > 9000 {
		t.Errorf("a page has %d bytes, want about 8 KB", len(one))
	}
	a, b := strings.Split(one, "\n"), strings.Split(two, "\n")
	differ := 0
	for n := range a {
		if a[n] != b[n] {
			differ++
		}
	}
	if len(a) != len(b) || differ != 1 {
		t.Errorf("two versions differ in %d lines of %d and %d, want one", differ, len(a), len(b))
	}
}

func TestParse(t *testing.T) {
	s, err := parseMetrics(strings.NewReader("# HELP x y\nvokter_overdue_pages 3\nvokter_checks_failed_total{class=\"timeout\"} 4\n" +
		"vokter_checks_failed_total{class=\"dns\"} 1\nvokter_deliveries_total{outcome=\"dead_letter\",sink=\"a b\"} 2\n" +
		"vokter_deliveries_total{outcome=\"delivered\",sink=\"a\"} 9\nvokter_store_bytes 1e+06\n"))
	if want := (sample{overdue: 3, failed: 5, dead: 2, store: 1e6}); err != nil || s != want {
		t.Errorf("parse = %+v, %v, want %+v", s, err, want)
	}
	if _, err := parseMetrics(strings.NewReader("vokter_store_bytes much\n")); err == nil {
		t.Error("a value that is no number was accepted")
	}
}

func TestOverdue(t *testing.T) {
	c := &clock{}
	w := &pageServer{options: options{pages: 100, hosts: 100}, clock: c, began: c.now().Add(-6 * time.Hour),
		pages: make([]page, 100), addrs: make([]string, 100)}
	for _, n := range []int{1, 2, 3, troubleRatio / 2} {
		w.pages[n].lastAsked = c.now().Add(-3 * time.Hour)
	}
	w.pages[1].lastAsked = c.now().Add(-100 * time.Minute)
	w.pages[3].lastAsked = c.now().Add(-90 * time.Minute)
	log := &logTail{onFailedCheck: w.recordFailedCheck}
	for _, part := range []string{"level=WARN msg=\"check fai", "led\" page=" + w.url(3) + " class=timeout\nmsg=other page=" + w.url(2) + "\n"} {
		if _, err := log.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if gap := c.now().Sub(w.pages[3].lastAsked); gap > time.Minute || w.failedUnread != 1 {
		t.Errorf("a failed check was noted %v ago, and %d were unread, want it now and 1", gap, w.failedUnread)
	}
	for n, want := range map[int]bool{1: false, 2: true, 3: false, troubleRatio / 2: false} { // the last one's host is dead
		w.recordGap(n, c.now())
		if got := w.pages[n].overdue; got != want {
			t.Errorf("page %d: overdue %v, want %v", n, got, want)
		}
	}
}
