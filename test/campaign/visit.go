package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// visit subscribes the guest to a page, or ends that, by a command of another program. What
// was changed before must be known to stand.
func (f *fleet) visit() error {
	n := f.dice.IntN(f.o.pages)
	p := f.ledger.last(guest, n)
	if mortal(n) || p != nil && !p.settled() {
		return nil
	}
	url := f.pages.url(n)
	if p.open() {
		f.did.add("cancels")
		p.asked = time.Now()
		return f.topics.command(url, "vokter.cancel.v1", map[string]string{"url": url, "client": guest})
	}
	f.did.add("subscribes")
	f.ledger.begin(guest, n, f.pages.taken(n))
	return f.topics.command(url, "vokter.subscribe.v1", map[string]any{"subscription": map[string]any{
		"url": url, "client": guest, "keywords": []string{"marker"}, "sinks": []string{"hook-" + guest},
	}})
}

// confirm looks which of the guest's subscriptions stand, or have ended. What a process lists
// would not do: one that was frozen lists for a moment what stood before.
func (f *fleet) confirm() {
	for n := range f.o.pages {
		p := f.ledger.last(guest, n)
		if p == nil || p.settled() || f.stream.standing(guest, n) != p.open() {
			continue
		}
		if p.open() {
			p.stood = f.pages.now(n)
		} else {
			p.ended = time.Now()
		}
	}
}

// lookedAt reports whether somebody looked since then at each page that is to be looked at.
func (f *fleet) lookedAt(since time.Time) bool {
	f.confirm()
	for n, looked := range f.pages.looks() {
		p := f.ledger.last(guest, n)
		stands := !lonely(n) || p.open() && p.settled()
		if stands && !f.given[n] && looked.Before(since) {
			f.awaited = fmt.Sprintf("page %d: that it is looked at", n)
			return false
		}
	}
	return true
}

// finish lets all processes live for the last time. Nothing fails any more; what stands is
// made sure of, every page changes once more, and all that was seen must arrive, and stand in
// the topic changes.
func (f *fleet) finish(ctx context.Context) error {
	f.ending = true
	f.pages.heal()
	f.inbox.heal()
	if err := f.startAll(ctx); err != nil {
		return err
	}
	began := time.Now()
	for _, done := range []func() bool{f.sure, func() bool { return f.lookedAt(began) }} {
		if err := f.await(ctx, done); err != nil {
			return err
		}
	}
	if !slices.Contains(f.o.without, "jumps") {
		for range jumps { // forth and back while they live, so that all notice each
			if err := errors.Join(f.jump(nil), f.pause(ctx, 1500*time.Millisecond)); err != nil {
				return err
			}
		}
	}
	f.pages.last()
	if err := f.await(ctx, f.settled); err != nil {
		return err
	}
	for i, m := range f.members {
		if err := m.end(); err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	if err := f.topics.finish("changes"); err != nil {
		return err
	}
	return f.await(ctx, func() bool {
		f.awaited = "the topic changes to be read to its end"
		return f.stream.ended() == lanes
	})
}

// sure reports whether it is known of every subscription whether it stands.
func (f *fleet) sure() bool {
	f.confirm()
	f.awaited = "to be known which subscriptions stand"
	for n := range f.o.pages {
		if p := f.ledger.last(guest, n); p != nil && !p.settled() {
			return false
		}
	}
	for n, is := range f.resuming {
		if is {
			m := f.turn()
			_ = f.resumePage(m.life, n) // it is tried again
			return false
		}
	}
	return true
}

// settled reports whether everybody was told all.
func (f *fleet) settled() bool {
	if f.inbox.starving() && !slices.Contains(f.o.without, "replays") {
		f.awaited = "all that was refused"
		f.inbox.please(true)
		for _, m := range f.members { // each knows of its own lanes
			f.process = m.process
			if a, err := f.verb(m.life, "replay", "-c", m.process.config, "--sink", "hook-"+picky); err != nil || a.code != 0 {
				return false
			}
		}
		time.Sleep(300 * time.Millisecond) // what it brought back is under way
		return false
	}
	return f.arrived()
}
