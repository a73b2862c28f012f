package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vokter/vokter"
)

// execute runs the pipeline of cfg with an HTTP listener at listen, if that is not
// empty, and writes the summary at its end.
func (a *app) execute(ctx context.Context, cfg vokter.Config, listen, summaryFile string) (vokter.Summary, error) {
	cfg.Now = clock()
	r, err := vokter.New(cfg)
	if err != nil {
		return vokter.Summary{}, &usageError{err: err}
	}
	err = runListening(ctx, r, cfg, listen)
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

// runListening runs r. It listens only once r is at work: before that another process
// may own the data directory.
func runListening(ctx context.Context, r *vokter.Router, cfg vokter.Config, listen string) error {
	if listen == "" {
		return r.Run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-r.Running():
	}
	stop, err := serve(ctx, r, cfg, listen)
	if err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	defer stop()
	return <-ended
}

// serve answers /healthz and /readyz at addr until stop is called, and leaves its
// address in the data directory, where other processes look for it.
func serve(ctx context.Context, r *vokter.Router, cfg vokter.Config, addr string) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w; name another address", addr, err)
	}
	note := ""
	if cfg.Dir != "" {
		note = filepath.Join(cfg.Dir, "listen")
		if err := writeFile(note, []byte(l.Addr().String()+"\n")); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	cfg.Logger.Info("listening", "address", l.Addr().String())
	s := &http.Server{
		Handler: health(r), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the listener failed", "error", err)
		}
	}()
	return func() {
		if note != "" {
			_ = os.Remove(note) // another run replaces it anyway
		}
		_ = s.Close()
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
