package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// patience is the timeout for each step of the last run.
const patience = time.Minute

// finish runs the process for the last time. Nothing fails any more. finish confirms the
// subscriptions, changes every page once more, and waits until all notifications arrive. A
// missing one is no error here; it is recorded for the judge.
func (d *directory) finish(ctx context.Context) error {
	d.pages.heal()
	d.inbox.heal()
	l, err := d.begin()
	if err != nil {
		return err
	}
	err = d.await(ctx, l, func() (bool, error) { return d.sure(l) })
	if err == nil { // a jump would wake those that sleep too long
		err = d.await(ctx, l, func() (bool, error) { return d.watched(l), nil })
	}
	if err == nil && !slices.Contains(d.o.without, "jumps") {
		for _, by := range jumps { // forth and back while it lives
			if err = errors.Join(err, d.waitAndJump(ctx, l, by)); err != nil {
				break
			}
		}
	}
	d.pages.last()
	if err == nil {
		err = d.await(ctx, l, func() (bool, error) { return d.settled(l) })
	}
	if err != nil {
		return errors.Join(err, l.kill())
	}
	return l.end()
}

// waitAndJump sets the clock a moment later.
func (d *directory) waitAndJump(ctx context.Context, l *life, by time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return l.own()
	case <-time.After(300 * time.Millisecond):
	}
	if d.clock.offset+by > latest {
		by = -2 * time.Hour
	}
	done, err := d.clock.jump(by)
	if done {
		d.did.add("jumps")
	}
	return err
}

// await waits until done, for as long as patience lasts.
func (d *directory) await(ctx context.Context, l *life, done func() (bool, error)) error {
	deadline := time.After(patience)
	for {
		select {
		case <-deadline:
			d.late = append(d.late, d.awaited)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.own()
		case <-time.After(100 * time.Millisecond):
		}
		if !d.listening(l) {
			continue
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
}

// sure reports whether it is known of every subscription whether it stands.
func (d *directory) sure(l *life) (bool, error) {
	d.awaited = "to be known which subscriptions stand"
	known := true
	for n := range d.o.pages {
		p := d.ledger.last(guest, n)
		known = known && (p == nil || p.settled())
	}
	if !known {
		return false, d.confirm(l)
	}
	for n, is := range d.resuming {
		if is {
			return false, d.resumePage(l, n)
		}
	}
	return true, nil
}

// watched reports whether somebody looked at each page in this life that is to be looked at.
func (d *directory) watched(l *life) bool {
	for n, looked := range d.pages.looks() {
		wanted := false
		for _, is := range d.wanted[n] {
			wanted = wanted || is
		}
		if wanted && !d.given[n] && looked.Before(l.from) {
			d.awaited = fmt.Sprintf("page %d: that it is looked at", n)
			return false
		}
	}
	return true
}

// settled reports whether all notifications arrived and all dead letters were replayed, and
// records what is missing.
func (d *directory) settled(l *life) (bool, error) {
	d.awaited = "all that was refused"
	if d.inbox.starving() && !slices.Contains(d.o.without, "replays") {
		d.inbox.please(true)
		if a, err := d.verb(l, "replay", "-c", d.process.config, "--sink", "hook-"+picky); err != nil || a.code != 0 {
			return false, err
		}
		time.Sleep(300 * time.Millisecond) // what it brought back is under way
		return false, nil
	}
	return d.arrived(), nil
}

// arrived reports whether everybody was told all but what was refused, and notes what is
// waited for.
func (d *directory) arrived() bool {
	e := d.evidence()
	mails := e.mails
	var v verdict // what is wrong is judged in the end
	if missing := v.watch(e.health).unfinished(e); len(missing) > 0 {
		d.awaited = "health: " + missing[0]
		return false
	}
	for n, h := range e.pages {
		for _, c := range clients {
			p := d.ledger.last(c, n)
			if !p.open() {
				continue
			}
			if d.given[n] {
				if !d.told(n) {
					d.awaited = fmt.Sprintf("page %d: that it was given up", n)
					return false
				}
				continue
			}
			if h.last > max(p.stood, p.taken) && !slices.ContainsFunc(mails[c], func(m mail) bool {
				its, err := m.read()
				return err == nil && its[0].page == n && its[len(its)-1].to == h.last
			}) {
				d.awaited = fmt.Sprintf("client %s page %d: its last version, %d (handed over: %v)", c, n, h.last, h.delivered[h.last])
				return false
			}
		}
	}
	return true
}
