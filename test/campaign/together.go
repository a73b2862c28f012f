package main

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// fightTogether is the campaign on processes that share pages over Kafka.
func fightTogether(ctx context.Context, o options, n int, dir string, did *tally) (v verdict, err error) {
	f, err := newFleet(ctx, o, n, dir, did)
	if f != nil {
		defer func() { err = errors.Join(err, f.close()) }()
	}
	if err != nil {
		return v, err
	}
	began, broken := time.Now(), 0
	for {
		part := float64(f.kills) / float64(max(o.kills, 1))
		if o.duration > 0 {
			part = float64(time.Since(began)) / float64(o.duration)
		}
		if part >= 1 && broken >= o.brokerKills {
			break
		}
		if broken < o.brokerKills && part >= (float64(broken)+0.5)/float64(o.brokerKills) {
			broken++
			if err := f.breakBroker(ctx); err != nil {
				return v, err
			}
		}
		if err := f.step(ctx); err != nil {
			return v, err
		}
	}
	err = f.finish(ctx)
	if ctx.Err() != nil {
		return v, err
	}
	v = judge(f.evidence())
	f.stream.judge(&v, f.pages.record())
	did.plus("slowest_catch_up_ms", int(f.slowest.Milliseconds()))
	return v, errors.Join(err, f.logged(), f.keep())
}

// step does one thing to a process, and several to pages and subscriptions until the next.
func (f *fleet) step(ctx context.Context) error {
	gap := time.Duration(f.dice.Int64N(int64(9 * time.Second)))
	if f.dice.IntN(4) == 0 {
		gap /= 20 // one thing follows close upon another
	}
	for till := time.Now().Add(gap); time.Now().Before(till); {
		if err := f.pause(ctx, time.Duration(20+f.dice.IntN(250))*time.Millisecond); err != nil {
			return err
		}
		for _, m := range f.members {
			if !m.up() && time.Now().After(m.until) {
				if err := f.back(m); err != nil {
					return err
				}
			}
		}
		f.confirm()
		if err := f.act(); err != nil {
			return err
		}
	}
	return f.hurt(f.members[f.dice.IntN(len(f.members))])
}

// hurt does something to a process: it is killed, with or without its disk, also while it is
// frozen; it ends in order; or it freezes until its session is over.
func (f *fleet) hurt(m *member) error {
	if m.life == nil {
		return nil
	}
	f.moves++
	m.until = time.Now().Add(time.Duration(f.dice.Int64N(int64(2 * session))))
	how := f.dice.IntN(8)
	switch {
	case how == 0 && !m.frozen:
		f.did.add("stops")
		return m.end()
	case how <= 3 && !m.frozen && f.o.freeze:
		f.did.add("freezes")
		m.until = time.Now().Add(session + time.Duration(f.dice.Int64N(int64(5*time.Second))))
		return m.freeze(true)
	}
	wipe := f.o.wipe && f.dice.IntN(3) == 0
	if wipe {
		f.did.add("wipes")
	}
	f.kills++
	f.did.add("kills")
	return m.kill(wipe)
}

// breakBroker kills the broker under whatever goes on, and brings it back after a while. Then
// everything must come to work again.
func (f *fleet) breakBroker(ctx context.Context) error {
	f.did.add("broker_kills")
	f.moves += len(f.members)
	if err := f.broker.kill(ctx); err != nil {
		return err
	}
	if err := f.pause(ctx, time.Duration(f.dice.Int64N(int64(15*time.Second)))); err != nil {
		return err
	}
	if err := f.broker.start(ctx); err != nil {
		return err
	}
	back := time.Now()
	if err := f.startAll(ctx); err != nil {
		return err
	}
	ready := time.Now()
	err := f.await(ctx, func() bool { return f.lookedAt(ready) })
	f.slowest = max(f.slowest, time.Since(back))
	return err
}

// act does one thing to pages, receivers and subscriptions.
func (f *fleet) act() error {
	m := f.turn()
	if m == nil {
		return nil
	}
	type action struct {
		kind string
		do   func() error
	}
	actions := []action{
		{"jumps", func() error { return f.jump(m.life) }}, {"reloads", f.visit}, {"reloads", f.reread},
		{"expiry", func() error { return f.doom(m.life) }}, {"expiry", func() error { return f.resume(m.life) }}, {"replays", func() error { return f.replay(m.life) }},
	}
	a := actions[f.dice.IntN(len(actions))]
	if slices.Contains(f.o.without, a.kind) {
		return nil
	}
	return a.do()
}

// reread changes the configuration, and tells some of the processes; the others find out.
func (f *fleet) reread() error {
	if err := f.configure(); err != nil {
		return err
	}
	for _, m := range f.members {
		if m.up() && m.ready(context.Background()) == nil && f.dice.IntN(2) == 0 {
			f.did.add("reloads")
			if err := m.life.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				return err
			}
		}
	}
	return nil
}
