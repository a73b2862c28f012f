package vokter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// errNotStarted says that a Router was asked to end before its transport had started.
var errNotStarted = errors.New("vokter: ended before it had started")

// startTransport connects the transport that was given.
func (r *Router) startTransport(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- r.transport.Start(ctx, r.wiring()) }()
	var err error
	select {
	case err = <-started:
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			err = errNotStarted
		}
	case err = <-r.broken:
		err = errors.Join(err, r.endStart(cancel, started))
	case <-r.finish:
		err = cmp.Or(r.endStart(cancel, started), errNotStarted)
	case <-ctx.Done():
		err = cmp.Or(r.endStart(cancel, started), errNotStarted)
	}
	closing := r.closeTransport()
	if closing != nil && errors.Is(err, errNotStarted) {
		return closing
	}
	return errors.Join(err, closing)
}

// endStart ends a start and waits for that. What it answers then says no more than that.
func (r *Router) endStart(cancel func(), started <-chan error) error {
	cancel()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-started:
		r.cfg.Logger.Debug("the transport was starting when it was told to end", "error", err)
		return nil
	case <-timer.C:
		return fmt.Errorf("the transport did not stop starting within %v of being told to", closeTimeout)
	}
}

// wiring is what the transport has to know of the Router.
func (r *Router) wiring() flow.Wiring {
	return flow.Wiring{
		Topics: topology(r.branches), Bare: true, Dir: r.cfg.Dir, MinFree: r.cfg.MinFree, Grace: closeTimeout / 2,
		Now: r.cfg.Now, Logger: r.cfg.Logger, OnBroken: r.stop, OnFatal: func(err error) {
			if r.cfg.OnFatal != nil {
				r.cfg.OnFatal(err)
			}
		},
	}
}

// closeTransport closes the transport. It does not wait for ever: a disk that is full or broken
// can hold a commit as long as it likes, and whatever was not committed comes again at the next
// start.
func (r *Router) closeTransport() error {
	limit := closeTimeout
	if r.stuck {
		limit = time.Second
	}
	closed := make(chan error, 1)
	go func() { closed <- r.transport.Close() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		if r.cfg.Transport != nil {
			return fmt.Errorf("%s could not be closed within %v: see that it answers; unfinished work is repeated at the next start", r.transport, limit)
		}
		return fmt.Errorf("the store (%s) could not be closed within %v: see that its disk has room and works, then start again; unfinished work is repeated", r.transport, limit)
	}
}
