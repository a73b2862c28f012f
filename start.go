package vokter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// errNotStarted says that a Router was asked to end before its transport had started.
var errNotStarted = errors.New("vokter: ended before it had started")

// startTransport connects a given transport to what it needs, where it has to be.
func (r *Router) startTransport(ctx context.Context) error {
	t, ok := r.transport.(interface {
		Start(ctx context.Context, w pipeline.Wiring) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- t.Start(ctx, r.wiring()) }()
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
		cancel()
		err = errors.Join(err, endsStarting(started))
	case <-r.finish:
		cancel()
		if err = endsStarting(started); err == nil {
			err = errNotStarted
		}
	case <-ctx.Done():
		if err = endsStarting(started); err == nil {
			err = errNotStarted
		}
	}
	closing := r.closeTransport()
	if closing != nil && errors.Is(err, errNotStarted) {
		return closing
	}
	return errors.Join(err, closing)
}

// endsStarting waits for a start that was told to end, whose own error then says no more.
func endsStarting(started <-chan error) error {
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-started:
		return nil
	case <-timer.C:
		return fmt.Errorf("the transport did not stop starting within %v of being told to", closeTimeout)
	}
}

// wiring is what a given transport is told.
func (r *Router) wiring() pipeline.Wiring {
	return pipeline.Wiring{
		Topics: topology(r.branches), Dir: r.cfg.Dir, MinFree: r.cfg.MinFree, Grace: closeTimeout / 2,
		Now: r.cfg.Now, Logger: r.cfg.Logger, OnBroken: r.stop, OnFatal: func(err error) {
			if r.cfg.OnFatal != nil {
				r.cfg.OnFatal(err)
			}
		},
	}
}
