//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// toggleGuest subscribes the guest to a random page, or cancels its subscription there, by a command of another
// program. It changes nothing while the result of an earlier change is not known.
func (f *fleet) toggleGuest() error {
	n := f.rng.IntN(f.options.pages)
	p := f.subscriptions.last(guestClient, n)
	if canExpire(n) || p != nil && !p.isSettled() {
		return nil
	}
	url := f.pages.url(n)
	if p.isOpen() {
		f.counters.add("cancels")
		p.cancelledAt = time.Now()
		return f.topics.publishCommand(url, "vokter.cancel.v1", map[string]string{"url": url, "client": guestClient})
	}
	f.counters.add("subscribes")
	f.subscriptions.add(guestClient, n, f.pages.lastAccepted(n))
	return f.topics.publishCommand(url, "vokter.subscribe.v1", map[string]any{"subscription": map[string]any{
		"url": url, "client": guestClient, "keywords": []string{"marker"}, "sinks": []string{"hook-" + guestClient},
	}})
}

// confirmSubscriptions looks which of the guest's subscriptions are active or have ended, and records that. What a
// process lists would not do: one that was frozen lists for a moment what was active before.
func (f *fleet) confirmSubscriptions() {
	for n := range f.options.pages {
		p := f.subscriptions.last(guestClient, n)
		if p == nil || p.isSettled() || f.state.isActive(guestClient, n) != p.isOpen() {
			continue
		}
		switch {
		case !p.isOpen():
			p.endedAt = time.Now()
		case isGuestOnly(n) && !f.pages.hasBaselineSince(n, p.requestedAt):
			// Nobody watched the page before. A request of the time before it ended, by a process that
			// was frozen since, may still make it change ahead of its baseline.
		default:
			p.knownAtVersion = f.pages.currentVersion(n)
		}
	}
}

// allCheckedSince reports whether each page that is to be checked was requested since then.
func (f *fleet) allCheckedSince(since time.Time) bool {
	f.confirmSubscriptions()
	for n, looked := range f.pages.lastLooks() {
		p := f.subscriptions.last(guestClient, n)
		stands := !isGuestOnly(n) || p.isOpen() && p.isSettled()
		if stands && !f.givenUp[n] && looked.Before(since) {
			f.waitingFor = fmt.Sprintf("page %d: that it is looked at", n)
			return false
		}
	}
	return true
}

// finish runs all processes for the last time. Nothing fails any more. It confirms the
// subscriptions, changes every page once more, and waits until all notifications arrive and the
// topics changes and pages are read to their end, the latter from its beginning.
func (f *fleet) finish(ctx context.Context) error {
	f.isFinalRun = true
	f.pages.endFailures()
	f.inbox.endFailures()
	if err := f.startAll(ctx); err != nil {
		return err
	}
	began := time.Now()
	for _, done := range []func() bool{f.subscriptionsKnown, func() bool { return f.allCheckedSince(began) }} {
		if err := f.waitFor(ctx, done); err != nil {
			return err
		}
	}
	if !slices.Contains(f.options.without, "jumps") {
		for range clockJumps { // forth and back while they live, so that all notice each
			if err := errors.Join(f.jumpClock(nil), f.pause(ctx, 1500*time.Millisecond)); err != nil {
				return err
			}
		}
	}
	f.pages.changeAll()
	if err := f.waitFor(ctx, f.allDelivered); err != nil {
		return err
	}
	for i, m := range f.members {
		if err := m.stop(); err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	if err := errors.Join(f.topics.writeEndMarkers("changes"), f.topics.writeEndMarkers("pages"), f.topics.consume("pages", f.state.addCurrent)); err != nil {
		return err
	}
	return f.waitFor(ctx, func() bool {
		f.waitingFor = "the topics changes and pages to be read to their end"
		return f.state.endedCount() == 2*laneCount
	})
}

// subscriptionsKnown reports whether it is known of every subscription whether it is active.
func (f *fleet) subscriptionsKnown() bool {
	f.confirmSubscriptions()
	f.waitingFor = "to be known which subscriptions stand"
	for n := range f.options.pages {
		if p := f.subscriptions.last(guestClient, n); p != nil && !p.isSettled() {
			return false
		}
	}
	for n, is := range f.resuming {
		if is {
			m := f.chooseMember()
			_ = f.resumePage(m.run, n) // it is tried again
			return false
		}
	}
	return true
}

// allDelivered reports whether all notifications arrived and all dead letters were replayed.
func (f *fleet) allDelivered() bool {
	if f.inbox.hasOpenRefusals() && !slices.Contains(f.options.without, "replays") {
		f.waitingFor = "all that was refused"
		f.inbox.setAcceptsAll(true)
		for _, m := range f.members { // each knows of its own lanes
			f.process = m.process
			if a, err := f.runVerb(m.run, "replay", "-c", m.process.config, "--sink", "hook-"+pickyClient); err != nil || a.code != 0 {
				return false
			}
		}
		time.Sleep(300 * time.Millisecond) // what it brought back is under way
		return false
	}
	return f.allArrived()
}
