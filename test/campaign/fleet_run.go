//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// runKafka runs the campaign on processes that share pages over Kafka.
func runKafka(ctx context.Context, o options, n int, dir string, did *counters) (v verdict, err error) {
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
			if err := f.restartBroker(ctx); err != nil {
				return v, err
			}
		}
		if err := f.runStep(ctx); err != nil {
			return v, err
		}
	}
	err = f.finish(ctx)
	if ctx.Err() != nil {
		return v, err
	}
	v = judge(f.evidence())
	f.state.judge(&v, f.pages.histories())
	f.state.judgeTable(&v, f.watched(), f.pages.histories())
	did.addN("current_texts", f.state.table.records)
	did.addN("slowest_catch_up_ms", int(f.slowestCatchUp.Milliseconds()))
	return v, errors.Join(err, f.checkLogs(), f.writeArrivals())
}

// runStep does random things to pages and subscriptions for a while, and then disrupts a process.
func (f *fleet) runStep(ctx context.Context) error {
	gap := time.Duration(f.rng.Int64N(int64(9 * time.Second)))
	if f.rng.IntN(4) == 0 {
		gap /= 20 // one thing follows close upon another
	}
	for till := time.Now().Add(gap); time.Now().Before(till); {
		if err := f.pause(ctx, time.Duration(20+f.rng.IntN(250))*time.Millisecond); err != nil {
			return err
		}
		for _, m := range f.members {
			if !m.isUp() && time.Now().After(m.backAt) {
				if err := f.bringBack(m); err != nil {
					return err
				}
			}
		}
		f.confirmSubscriptions()
		if err := f.doRandomAction(); err != nil {
			return err
		}
	}
	return f.disrupt(f.members[f.rng.IntN(len(f.members))])
}

// disrupt kills a process, with or without its disk, also while it is frozen; or ends it in order; or
// freezes it until its session is over.
func (f *fleet) disrupt(m *member) error {
	if m.run == nil {
		return nil
	}
	f.laneMoves++
	m.backAt = time.Now().Add(time.Duration(f.rng.Int64N(int64(2 * sessionTimeout))))
	how := f.rng.IntN(8)
	switch {
	case how == 0 && !m.frozen:
		f.counters.add("stops")
		return m.stop()
	case how <= 3 && !m.frozen && f.options.freeze:
		f.counters.add("freezes")
		m.backAt = time.Now().Add(sessionTimeout + time.Duration(f.rng.Int64N(int64(5*time.Second))))
		return m.setFrozen(true)
	}
	wipe := f.options.wipe && f.rng.IntN(3) == 0
	if wipe {
		f.counters.add("wipes")
	}
	f.kills++
	f.counters.add("kills")
	return m.kill(wipe)
}

// restartBroker kills the broker and starts it again after a while. Then everything must come to work
// again.
func (f *fleet) restartBroker(ctx context.Context) error {
	f.counters.add("broker_kills")
	f.laneMoves += len(f.members)
	if err := f.broker.kill(ctx); err != nil {
		return err
	}
	if err := f.pause(ctx, time.Duration(f.rng.Int64N(int64(15*time.Second)))); err != nil {
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
	err := f.waitFor(ctx, func() bool { return f.allCheckedSince(ready) })
	f.slowestCatchUp = max(f.slowestCatchUp, time.Since(back))
	return err
}

// doRandomAction does one random thing to pages, receivers or subscriptions.
func (f *fleet) doRandomAction() error {
	m := f.chooseMember()
	if m == nil {
		return nil
	}
	type action struct {
		kind string
		do   func() error
	}
	actions := []action{
		{"jumps", func() error { return f.jumpClock(m.run) }}, {"reloads", f.toggleGuest}, {"reloads", f.changeConfig},
		{"expiry", func() error { return f.expirePage(m.run) }}, {"expiry", func() error { return f.resumeExpired(m.run) }}, {"replays", func() error { return f.replayDeadLetters(m.run) }},
	}
	a := actions[f.rng.IntN(len(actions))]
	if slices.Contains(f.options.without, a.kind) {
		return nil
	}
	return a.do()
}

// changeConfig changes the configuration, and tells some of the processes; the others find out.
func (f *fleet) changeConfig() error {
	if err := f.configure(); err != nil {
		return err
	}
	for _, m := range f.members {
		if m.isUp() && m.ready(context.Background()) == nil && f.rng.IntN(2) == 0 {
			f.counters.add("reloads")
			if err := m.run.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				return err
			}
		}
	}
	return nil
}
