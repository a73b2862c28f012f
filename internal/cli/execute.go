package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
)

// execute runs the pipeline of cfg with an HTTP listener at listen, if that is not
// empty, and writes the summary at its end. Unless it is nil, beside runs once the pipeline
// is at work, until its context is done.
func (a *app) execute(ctx context.Context, cfg vokter.Config, listen, summaryFile string, beside func(context.Context, *vokter.Router)) (inspect.Summary, error) {
	r, err := a.router(cfg)
	if err != nil {
		return inspect.Summary{}, err
	}
	err = runBeside(ctx, r, cfg, listen, beside)
	sum := r.Summary()
	select {
	case <-r.Running(): // one that did not start leaves an earlier summary alone
		if summaryFile != "" {
			err = errors.Join(err, writeSummary(summaryFile, sum))
		}
	default:
	}
	return sum, err
}

// runBeside runs r with a listener, which answers from the beginning, and with beside once r
// is at work.
func runBeside(ctx context.Context, r *vokter.Router, cfg vokter.Config, listen string, beside func(context.Context, *vokter.Router)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	l, err := listenAt(ctx, r, cfg, listen)
	if err != nil {
		cancel()
		if first := <-ended; first != nil { // a data directory that is in use says more
			return first
		}
		return err
	}
	defer l.stop()
	select {
	case err := <-ended:
		return err
	case <-r.Running():
	}
	// Before that another process may own the data directory.
	if err := l.announce(); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	var g sync.WaitGroup
	if beside != nil {
		g.Go(func() { beside(ctx, r) })
	}
	err = <-ended
	cancel()
	g.Wait()
	return err
}
