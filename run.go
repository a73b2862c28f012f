package vokter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// drainHorizon is how far ahead a run that ends by itself, by Config.Checks or Finish, waits
// for retries that are due.
const drainHorizon = 30 * time.Second

// drainStallTimeout is how long a drain without progress goes on beyond drainHorizon and the longest
// attempt.
const drainStallTimeout = 30 * time.Second

// errDraining is what Ready returns during the drain.
var errDraining = errors.New("stopping: finishing the work in progress")

// closeTimeout is how long stages and handlers may take to stop. Handlers have half of it to
// finish; then their contexts are cancelled.
const closeTimeout = 10 * time.Second

// runStages starts the stages and handlers, works, drains and stops them.
func (r *Router) runStages(ctx context.Context, s *stages) error {
	w, err := r.watermillHandlers(s)
	if err != nil {
		return err
	}
	// The stages and handlers outlive ctx, so that work in progress can be drained.
	alive, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	defer kill(nil)
	hear, err := r.tailDecisions(alive)
	if err != nil {
		return err
	}
	fetching, stopFetching := context.WithCancel(alive)
	defer stopFetching()
	var g sync.WaitGroup
	broken := make(chan error, 8) // one for each start below
	start := func(name string, run func() error) {
		g.Go(func() {
			if err := run(); err != nil && !errors.Is(err, context.Canceled) {
				broken <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	if r.cfg.Mode == ModeAll {
		start("fetch", func() error { return s.fetch.Run(fetching) })
		start("versions", func() error { return r.boundVersions(fetching, s) })
		start("watchdog", func() error { return r.watchOverdue(fetching, s) })
		if s.fileFetcher != nil {
			start("files", func() error { return s.fileFetcher.Notify(fetching, r.fileChanged) })
		}
		start("sources", func() error { return r.runSources(fetching) })
		if r.cfg.Checks > 0 {
			start("checks", func() error { return r.watchDiskRoom(fetching) })
		}
	}
	delivering, stopDelivering := context.WithCancel(alive)
	defer stopDelivering()
	delivered := make(chan struct{})
	if r.cfg.Mode == ModeCommands {
		close(delivered)
	} else {
		start("delivery", func() error { defer close(delivered); return s.delivery.Run(delivering) })
	}
	handling, stopHandling := context.WithCancel(alive)
	defer stopHandling()
	start("router", func() error { return w.run(handling) })
	start("decisions", hear)
	start("recent changes", func() error { return r.recent.Run(alive, r.transport) })

	err = r.workUntilStopped(ctx, s, w, broken)
	stopFetching()
	r.setNotReady(errDraining)
	if err == nil {
		err = r.drain(ctx, s, w)
	}
	ended := make(chan error, 1)
	go func() {
		var cerr error
		stopDelivering()
		if err == nil {
			waitForResults(s, w, delivered)
		}
		if w.ownsRouter {
			_ = w.router.Close() // it fails when handlers go on too long; kill cancels them, and their messages are handled again
		} else {
			stopHandling()
			<-w.ended
		}
		kill(nil)
		g.Wait()
		r.closeSinks()
		close(broken)
		for late := range broken {
			cerr = errors.Join(cerr, late)
		}
		ended <- cerr
	}()
	select {
	case cerr := <-ended:
		return errors.Join(err, cerr)
	case <-time.After(closeTimeout):
		// A sink or fetcher that ignores its context, or a disk that hangs, must not keep the
		// program alive.
		r.stopTimedOut = true
		return errors.Join(err, fmt.Errorf("a stage, sink, source or handler did not stop within %v", closeTimeout))
	}
}

// resultsTimeout is how long the end of the last attempts and the commits of their results may take.
const resultsTimeout = 2 * time.Second

// waitForResults waits until delivery, which was stopped, has ended its attempts, and the handlers have committed
// their results. A receiver that answered in the last moment would otherwise get its notification again
// after the next start.
func waitForResults(s *stages, w *handlers, delivered <-chan struct{}) {
	timeout := time.After(resultsTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-delivered:
			if s.delivery.Settled() {
				return
			}
		default:
		}
		select {
		case <-tick.C:
		case <-w.ended:
			return
		case <-timeout:
			return
		}
	}
}

// workUntilStopped applies the configuration and returns nil when it is time to drain.
func (r *Router) workUntilStopped(ctx context.Context, s *stages, w *handlers, broken <-chan error) error {
	select {
	case <-w.running:
	case err := <-broken:
		return err
	case <-ctx.Done():
		return nil
	}
	running := sync.OnceFunc(func() { close(r.running) })
	if r.transport.Ready() != nil {
		running() // so that Ready returns the reason instead of "starting"
	}
	if r.cfg.Mode == ModeAll {
		first := func(ctx context.Context) error { return r.applyAtStart(ctx, s) }
		if err := r.runInterruptible(ctx, broken, first); err != nil || ctx.Err() != nil {
			return err
		}
	}
	r.startTook.Store(int64(time.Since(r.startTime)))
	running()
	r.cfg.Logger.Info("running", "subscriptions", len(r.cfg.Subscriptions), "data", r.transport.String())
	var gained <-chan struct{}
	if r.cfg.Mode == ModeAll {
		gained = r.transport.Gained()
	}
	var look <-chan time.Time
	if r.cfg.Checks > 0 {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			r.cfg.Logger.Info("stopping: finishing the work in progress", "at_most", r.cfg.Drain)
			return nil
		case err := <-broken:
			return err
		case err := <-r.stopErr:
			return err
		case <-r.finish:
			return nil
		case <-gained:
			again := func(ctx context.Context) error { return r.applyToOwnedPages(ctx, s) }
			if err := r.runInterruptible(ctx, broken, again); err != nil {
				return err
			}
		case <-look:
			if s.index.Finished() {
				return nil
			}
		}
	}
}

// diskRoomTimeout is how long a run of Config.Checks waits for room on the disk.
const diskRoomTimeout = time.Minute

// watchDiskRoom returns an error once the disk has had too little room for diskRoomTimeout. It ends with ctx.
func (r *Router) watchDiskRoom(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		again := r.transport.Room()
		if again == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-time.After(diskRoomTimeout):
			if err := r.transport.Ready(); err != nil {
				return err
			}
		}
	}
}

// runInterruptible runs f and returns its error, or nil where ctx or Finish interrupts it.
func (r *Router) runInterruptible(ctx context.Context, broken <-chan error, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	applied, returned := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(returned)
		applied <- f(ctx)
	}()
	var err error
	select {
	case err = <-applied:
		if ctx.Err() != nil {
			err = nil
		}
		return err
	case err = <-broken:
	case err = <-r.stopErr:
	case <-r.finish:
	}
	cancel()
	<-returned
	return err
}

// drain finishes the work in progress and makes the deliveries that are due. With
// Config.Checks, and after Finish, it waits for all that fall due within drainHorizon of its
// start. Once ctx is done it waits only for those due now, for at most Config.Drain. Fetching
// has stopped before.
func (r *Router) drain(ctx context.Context, s *stages, w *handlers) error {
	if r.cfg.Mode == ModeCommands {
		return nil // the caller of a command waits for its decision
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var held time.Duration // how far ahead to wait for attempts that a rate limit delays
	var deadline <-chan time.Time
	var until time.Time
	if ctx.Err() == nil {
		until, held = time.Now().Add(drainHorizon), drainHorizon
	}
	done := ctx.Done()
	var last uint64
	progress := time.Now()
	quietBefore := false
	for {
		select {
		case <-done:
			done, until, held = nil, time.Time{}, 0
			if r.isInMemory() {
				held = r.cfg.Drain // no later process makes these attempts
			}
			if err := r.sendOpenDigests(ctx, s); err != nil { // there is no time to wait for more items
				return err
			}
			deadline = time.After(r.cfg.Drain)
		case <-deadline:
			return r.reportUndelivered(s, r.transport.Idle())
		case err := <-r.stopErr:
			return err
		case <-w.ended: // the program closed its message.Router
			return r.reportUndelivered(s, r.transport.Idle())
		case <-tick.C:
			// Digests end when no message in flight could still add to them, or when there was
			// no progress for a long time.
			if r.transport.Idle() || time.Since(progress) > drainHorizon {
				if err := r.sendOpenDigests(ctx, s); err != nil {
					return err
				}
			}
			// The drain does not wait beyond until for a receiver that keeps failing.
			due, _ := s.delivery.Backlog(max(time.Until(until), 0))
			idle := r.transport.Idle()
			quiet := due == 0 && idle && s.delivery.Idle(held)
			now := r.transport.Activity()
			if now != last {
				progress = time.Now()
			}
			stuck := time.Since(progress) > drainHorizon+drainStallTimeout+s.delivery.LongestAttempt()
			if quiet && quietBefore && now == last || stuck {
				// What comes due from here on, such as the next check of a page, is not unfinished work.
				return r.reportUndelivered(s, idle)
			}
			quietBefore, last = quiet, now
		}
	}
}

// sendOpenDigests sends the open digests now where no later process could send them.
func (r *Router) sendOpenDigests(ctx context.Context, s *stages) error {
	if !r.isInMemory() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Drain)
	defer cancel()
	return s.delivery.EndDigests(ctx)
}

// isInMemory reports whether the Router keeps everything in memory.
func (r *Router) isInMemory() bool {
	return r.cfg.Dir == "" && r.cfg.Transport == nil && r.cfg.Store == nil
}

// reportUndelivered reports the notifications that were not delivered: an error where they are lost, a
// warning in the log where they are kept. idle is whether all other work is finished.
func (r *Router) reportUndelivered(s *stages, idle bool) error {
	due, parked := s.delivery.Backlog(0)
	n := due + parked
	volatile := r.isInMemory()
	switch {
	case volatile && !idle:
		return fmt.Errorf("work was unfinished when the drain ended after %v and is lost: there is no data directory to keep it in", r.cfg.Drain)
	case n == 0:
		return nil
	case volatile:
		return fmt.Errorf("%d notifications were not delivered and are lost, since there is no data directory to keep them in", n)
	default:
		when := "the data directory is used again"
		if r.cfg.Transport != nil {
			when = "a process goes on with them"
		}
		r.keptNotifications.Store(int64(s.delivery.Waiting()))
		r.cfg.Logger.Warn("notifications were not delivered yet; they are kept and delivered when "+when, "notifications", n)
		return nil
	}
}
