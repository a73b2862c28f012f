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

// ErrNothingRead is what Run returns where every check that Config.Checks asked for failed. It is joined with the last
// failure of each page, of at most ten pages.
var ErrNothingRead = errors.New("every check failed")

// maxNamedFailures is how many failed pages an ErrNothingRead names.
const maxNamedFailures = 10

// errDraining is what Ready returns during the drain.
var errDraining = errors.New("stopping: finishing the work in progress")

// closeTimeout is how long stages and handlers may take to stop. Handlers have half of it to
// finish; then their contexts are cancelled.
const closeTimeout = 10 * time.Second

// maxStarted is how many goroutines runStages starts at most that may fail.
const maxStarted = 10

// run is what one Run of a Router has for itself; the Router has what outlives it.
type run struct {
	*Router
	began    time.Time
	poison   *poisonMessages
	handlers *handlers
	// broken receives the errors of what runs beside the handlers.
	broken chan error
	// offlineRestored says that the process owns the lane of flow.HealthKey and has read since when an
	// earlier process was offline.
	offlineRestored bool
	// stopTimedOut says that something did not stop in time.
	stopTimedOut bool
}

// run opens the transport, works, and closes the transport.
func (r *run) run(ctx context.Context) (err error) {
	switch err := r.openTransport(ctx); {
	case errors.Is(err, errNotStarted):
		return nil
	case err != nil:
		return err
	}
	defer r.workers.Close()
	r.poison = r.openPoisonMessages()
	defer func() {
		if !r.stopTimedOut { // otherwise a handler may still use the sinks
			r.poison.close()
		}
	}()
	defer func() {
		r.transportClosing.Store(true)
		err = errors.Join(err, r.closeTransport())
	}()
	if r.stages, err = r.buildStages(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stages.httpFetcher.Close()) }()
	return r.runStages(ctx)
}

// runStages starts the stages and handlers, works, drains and stops them.
func (r *run) runStages(ctx context.Context) error {
	if err := r.addHandlers(); err != nil {
		return err
	}
	s, w := r.stages, r.handlers
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
	start := func(name string, run func() error) {
		g.Go(func() {
			if err := run(); err != nil && !errors.Is(err, context.Canceled) {
				r.broken <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	if r.cfg.Mode == ModeAll {
		start("fetch", func() error { return s.fetch.Run(fetching) })
		start("versions", func() error { return r.boundVersions(fetching) })
		start("watchdog", func() error { return r.watchOverdue(fetching) })
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

	err = r.workUntilStopped(ctx)
	stopFetching()
	r.setNotReady(errDraining)
	if err == nil {
		err = r.drain(ctx)
	}
	ended := make(chan error, 1)
	go func() {
		var cerr error
		stopDelivering()
		if err == nil {
			r.waitForResults(delivered)
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
		close(r.broken)
		for late := range r.broken {
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
func (r *run) waitForResults(delivered <-chan struct{}) {
	timeout := time.After(resultsTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-delivered:
			if r.stages.delivery.Settled() {
				return
			}
		default:
		}
		select {
		case <-tick.C:
		case <-r.handlers.ended:
			return
		case <-timeout:
			return
		}
	}
}

// workUntilStopped applies the configuration and returns nil when it is time to drain.
func (r *run) workUntilStopped(ctx context.Context) error {
	select {
	case <-r.handlers.running:
	case err := <-r.broken:
		return err
	case <-ctx.Done():
		return nil
	}
	running := sync.OnceFunc(func() { close(r.running) })
	if r.transport.Ready() != nil {
		running() // so that Ready returns the reason instead of "starting"
	}
	if r.cfg.Mode == ModeAll {
		if err := r.runInterruptible(ctx, r.applyAtStart); err != nil || ctx.Err() != nil {
			return err
		}
	}
	r.startTook.Store(int64(time.Since(r.began)))
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
		case err := <-r.broken:
			return err
		case err := <-r.stopErr:
			return err
		case <-r.finish:
			return nil
		case <-gained:
			if err := r.runInterruptible(ctx, r.applyToOwnedPages); err != nil {
				return err
			}
		case <-look:
			if r.stages.index.Finished() {
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
func (r *run) runInterruptible(ctx context.Context, f func(ctx context.Context) error) error {
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
	case err = <-r.broken:
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
func (r *run) drain(ctx context.Context) error {
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
			if err := r.sendOpenDigests(ctx); err != nil { // there is no time to wait for more items
				return err
			}
			deadline = time.After(r.cfg.Drain)
		case <-deadline:
			return r.reportUndelivered(r.transport.Idle())
		case err := <-r.stopErr:
			return err
		case <-r.handlers.ended: // the program closed its message.Router
			return r.reportUndelivered(r.transport.Idle())
		case <-tick.C:
			// Digests end when no message in flight could still add to them, or when there was
			// no progress for a long time.
			if r.transport.Idle() || time.Since(progress) > drainHorizon {
				if err := r.sendOpenDigests(ctx); err != nil {
					return err
				}
			}
			// The drain does not wait beyond until for a receiver that keeps failing.
			due, _ := r.stages.delivery.Backlog(max(time.Until(until), 0))
			if r.cfg.Mode == ModeDeliver {
				due = 0 // no attempt follows one that failed
			}
			idle := r.transport.Idle()
			quiet := due == 0 && idle && r.stages.delivery.Idle(held)
			now := r.transport.Activity()
			if now != last {
				progress = time.Now()
			}
			stuck := time.Since(progress) > drainHorizon+drainStallTimeout+r.stages.delivery.LongestAttempt()
			if quiet && quietBefore && now == last || stuck {
				// What comes due from here on, such as the next check of a page, is not unfinished work.
				return r.reportUndelivered(idle)
			}
			quietBefore, last = quiet, now
		}
	}
}

// sendOpenDigests sends the open digests now where no later process could send them.
func (r *run) sendOpenDigests(ctx context.Context) error {
	if !r.isInMemory() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Drain)
	defer cancel()
	return r.stages.delivery.EndDigests(ctx)
}

// isInMemory reports whether the Router keeps everything in memory.
func (r *Router) isInMemory() bool {
	return r.cfg.Dir == "" && r.cfg.Transport == nil && r.cfg.Store == nil
}

// reportUndelivered reports the notifications that were not delivered: an error where they are lost, a
// warning in the log where they are kept. idle is whether all other work is finished.
func (r *run) reportUndelivered(idle bool) error {
	due, parked := r.stages.delivery.Backlog(0)
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
		r.keptNotifications.Store(int64(r.stages.delivery.Waiting()))
		r.cfg.Logger.Warn("notifications were not delivered yet; they are kept and delivered when "+when, "notifications", n)
		return nil
	}
}
