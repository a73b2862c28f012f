//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// stepTimeout is the timeout for each step of the last run.
const stepTimeout = time.Minute

// finish runs the process for the last time. Nothing fails any more. finish confirms the
// subscriptions, changes every page once more, and waits until all notifications arrive. A
// missing one is no error here; it is recorded for the judge.
func (d *directory) finish(ctx context.Context) error {
	d.pages.endFailures()
	d.inbox.endFailures()
	l, err := d.startRun()
	if err != nil {
		return err
	}
	err = d.waitFor(ctx, l, func() (bool, error) { return d.subscriptionsKnown(l) })
	if err == nil { // a jump would wake those that sleep too long
		err = d.waitFor(ctx, l, func() (bool, error) { return d.allPagesChecked(l), nil })
	}
	if err == nil && !slices.Contains(d.options.without, "jumps") {
		for _, by := range clockJumps { // forth and back while it lives
			if err = errors.Join(err, d.waitAndJump(ctx, l, by)); err != nil {
				break
			}
		}
	}
	d.pages.changeAll()
	if err == nil {
		err = d.waitFor(ctx, l, func() (bool, error) { return d.allDelivered(l) })
	}
	if err != nil {
		return errors.Join(err, l.kill())
	}
	return l.stop()
}

// waitAndJump sets the clock a moment later.
func (d *directory) waitAndJump(ctx context.Context, l *processRun, by time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return l.unexpectedExit()
	case <-time.After(300 * time.Millisecond):
	}
	if d.clock.offset+by > maxOffset {
		by = -2 * time.Hour
	}
	done, err := d.clock.jump(by)
	if done {
		d.counters.add("jumps")
	}
	return err
}

// waitFor waits until done returns true, for stepTimeout at most. What took longer is recorded.
func (d *directory) waitFor(ctx context.Context, l *processRun, done func() (bool, error)) error {
	deadline := time.After(stepTimeout)
	for {
		select {
		case <-deadline:
			d.timedOut = append(d.timedOut, d.waitingFor)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.unexpectedExit()
		case <-time.After(100 * time.Millisecond):
		}
		if !d.isListening(l) {
			continue
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
}

// subscriptionsKnown reports whether it is known of every subscription whether it is active.
func (d *directory) subscriptionsKnown(l *processRun) (bool, error) {
	d.waitingFor = "to be known which subscriptions stand"
	known := true
	for n := range d.options.pages {
		p := d.subscriptions.last(guestClient, n)
		known = known && (p == nil || p.isSettled())
	}
	if !known {
		return false, d.confirmSubscriptions(l)
	}
	for n, is := range d.resuming {
		if is {
			return false, d.resumePage(l, n)
		}
	}
	return true, nil
}

// allPagesChecked reports whether each page that is to be checked was requested in this run.
func (d *directory) allPagesChecked(l *processRun) bool {
	for n, looked := range d.pages.lastLooks() {
		wanted := false
		for _, is := range d.wanted[n] {
			wanted = wanted || is
		}
		if wanted && !d.givenUp[n] && looked.Before(l.startedAt) {
			d.waitingFor = fmt.Sprintf("page %d: that it is looked at", n)
			return false
		}
	}
	return true
}

// allDelivered reports whether all notifications arrived and all dead letters were replayed, and
// records what is missing.
func (d *directory) allDelivered(l *processRun) (bool, error) {
	d.waitingFor = "all that was refused"
	if d.inbox.hasOpenRefusals() && !slices.Contains(d.options.without, "replays") {
		d.inbox.setAcceptsAll(true)
		if a, err := d.runVerb(l, "replay", "-c", d.process.config, "--sink", "hook-"+pickyClient); err != nil || a.code != 0 {
			return false, err
		}
		time.Sleep(300 * time.Millisecond) // what it brought back is under way
		return false, nil
	}
	return d.allArrived(), nil
}

// allArrived reports whether all notifications arrived that were not refused, and records what is
// waited for.
func (d *directory) allArrived() bool {
	e := d.evidence()
	mails := e.mails
	var v verdict // what is wrong is judged in the end
	if missing := v.readHealth(e.health).missing(e); len(missing) > 0 {
		d.waitingFor = "health: " + missing[0]
		return false
	}
	for n, h := range e.pages {
		for _, c := range clients {
			p := d.subscriptions.last(c, n)
			if !p.isOpen() {
				continue
			}
			if d.givenUp[n] {
				if !d.knowsGivenUp(n) {
					d.waitingFor = fmt.Sprintf("page %d: that it was given up", n)
					return false
				}
				continue
			}
			if h.last > max(p.knownAtVersion, p.afterVersion) && !slices.ContainsFunc(mails[c], func(m mail) bool {
				its, err := m.items()
				return err == nil && its[0].page == n && its[len(its)-1].to == h.last
			}) {
				d.waitingFor = fmt.Sprintf("client %s page %d: its last version, %d (handed over: %v)", c, n, h.last, h.delivered[h.last])
				return false
			}
		}
	}
	return true
}
