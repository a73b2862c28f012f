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
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/manage"
)

// listener answers /healthz, /readyz, /metrics and the API for a Router that runs, or is
// about to. A nil one does nothing.
type listener struct {
	addr   string
	server *http.Server
	api    *manage.API
	// note is the file in the data directory where other processes find the address; empty:
	// there is no data directory.
	note string
}

// listenAt answers at addr from now on; with an empty one it returns nil.
func listenAt(ctx context.Context, r *vokter.Router, cfg vokter.Config, addr string) (*listener, error) {
	if addr == "" {
		return nil, nil
	}
	data, note := "", ""
	if cfg.Dir != "" {
		var err error
		if data, err = filepath.Abs(cfg.Dir); err != nil {
			return nil, err
		}
		note = filepath.Join(cfg.Dir, "listen")
	}
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w; name another address", addr, err)
	}
	cfg.Logger.Info("listening", "address", on.Addr().String())
	api := manage.Handler(r, manage.Process{Data: data})
	mux := http.NewServeMux()
	mux.Handle("/", health(r))
	mux.Handle("GET /metrics", metrics(r))
	mux.Handle(manage.Prefix+"/", api)
	l := &listener{addr: on.Addr().String(), api: api, note: note, server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}}
	go func() {
		if err := l.server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the listener failed", "error", err)
		}
	}()
	return l, nil
}

// announce leaves the address in the data directory, which must be the Router's.
func (l *listener) announce() error {
	if l == nil || l.note == "" {
		return nil
	}
	return writeFile(l.note, []byte(l.addr+"\n"))
}

// stop answers nothing any more.
func (l *listener) stop() {
	if l == nil {
		return
	}
	if b, err := os.ReadFile(l.note); err == nil && strings.TrimSpace(string(b)) == l.addr {
		_ = os.Remove(l.note) // it may be the successor's
	}
	_ = l.server.Close()
	l.api.Close() // without its connection a backup breaks off, and removes what it made
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
