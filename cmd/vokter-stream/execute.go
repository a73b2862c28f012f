package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/manage"
)

// execute runs the pipeline of cfg with an HTTP listener at listen, if that is not
// empty, and writes the summary at its end. Unless it is nil, beside runs once the pipeline
// is at work, until its context is done.
func (a *app) execute(ctx context.Context, cfg vokter.Config, listen, summaryFile string, beside func(context.Context, *vokter.Router)) (vokter.Summary, error) {
	cfg.Now = clock()
	r, err := vokter.New(cfg)
	if err != nil {
		return vokter.Summary{}, &usageError{err: err}
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

// runBeside runs r with a listener and beside it. Both begin only once r is at work: before
// that another process may own the data directory.
func runBeside(ctx context.Context, r *vokter.Router, cfg vokter.Config, listen string, beside func(context.Context, *vokter.Router)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-r.Running():
	}
	if listen != "" {
		stop, err := serve(ctx, r, cfg, listen)
		if err != nil {
			cancel()
			return errors.Join(err, <-ended)
		}
		defer stop()
	}
	var g sync.WaitGroup
	if beside != nil {
		g.Go(func() { beside(ctx, r) })
	}
	err := <-ended
	cancel()
	g.Wait()
	return err
}

// serve answers /healthz, /readyz and the API at addr until stop is called, and leaves its
// address in the data directory, where other processes look for it.
func serve(ctx context.Context, r *vokter.Router, cfg vokter.Config, addr string) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w; name another address", addr, err)
	}
	data, note := "", ""
	if cfg.Dir != "" {
		if data, err = filepath.Abs(cfg.Dir); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		note = filepath.Join(cfg.Dir, "listen")
		if err := writeFile(note, []byte(l.Addr().String()+"\n")); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	cfg.Logger.Info("listening", "address", l.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("/", health(r))
	api := manage.Handler(r, manage.Process{Data: data})
	mux.Handle(manage.Prefix+"/", api)
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the listener failed", "error", err)
		}
	}()
	return func() {
		if b, err := os.ReadFile(note); err == nil && strings.TrimSpace(string(b)) == l.Addr().String() {
			_ = os.Remove(note) // it may be the successor's
		}
		_ = s.Close()
		api.Close() // without its connection a backup breaks off, and removes what it made
	}, nil
}

// health says whether the process lives, and whether the pipeline is at work.
func health(r interface{ Ready() error }) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := r.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
