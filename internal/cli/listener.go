package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/inspect/metrics"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/slackapp"
	"github.com/vokter/vokter/internal/web"
	"github.com/vokter/vokter/pipeline/flow"
)

// listener is the HTTP server of a Router. It serves /healthz, /readyz and /metrics to
// everybody, the API to requests with its token, and the web page to users who log in with one. It may start before
// the Router runs. A nil listener does nothing.
type listener struct {
	addr, token string
	server      *http.Server
	api         *manage.API
	logins      *manage.Logins
	// announced is called when other processes can find the listener. It may be nil.
	announced func(addr string)
	// dir is the data directory, where other processes find the address and the token. If it is
	// empty, there is no token.
	dir string
}

// maxScrapes limits concurrent scrapes, so that processor time remains for the pipeline.
const maxScrapes = 4

// listenSettings says where a listener is, who may use its API besides users of the data directory, and how
// its web page is. Without an address there is none. All but the address may be nil.
type listenSettings struct {
	addr   string
	access *manage.Access
	web    *web.Settings
	slack  *slackapp.Settings
	logins *manage.Logins
	sinks  manage.SinkStore
	// announced is called with the address when the pipeline works.
	announced func(addr string)
}

// start starts the listener. It returns nil if there is none.
func (at listenSettings) start(ctx context.Context, r *vokter.Router, cfg vokter.Config) (*listener, error) {
	if at.addr == "" {
		return nil, nil
	}
	at.web = cmp.Or(at.web, new(web.Settings))
	data, token := "", ""
	if cfg.Dir != "" {
		var err error
		if data, err = filepath.Abs(cfg.Dir); err != nil {
			return nil, err
		}
		token = manage.NewToken()
	}
	on, err := listen(ctx, at.addr)
	if err != nil {
		return nil, err
	}
	cfg.Logger.Info("listening", "address", on.Addr().String())
	api, err := manage.New(r, manage.Options{Process: client.Process{Data: data, Version: vokter.Version()}, Token: token, Access: at.access, Logins: at.logins, Sinks: at.sinks})
	if err != nil {
		return nil, errors.Join(err, on.Close())
	}
	l := &listener{addr: on.Addr().String(), token: token, api: api, logins: api.Logins(), announced: at.announced, dir: cfg.Dir, server: &http.Server{
		Handler: at.web.Within(routes(r, api, at.slackHandler(r, cfg.Logger), web.New(web.Options{API: api, Settings: at.web, Gauges: r.Gauges, Logger: cfg.Logger}))), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}}
	on = limitConnections(l.server, on, maxConnections, silenceLimit)
	go func() {
		if err := l.server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the listener failed", "error", err)
		}
	}()
	return l, nil
}

// listen listens at addr. Its error names the address once.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err // leave out "listen tcp" and the address
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w; name another address", addr, err)
	}
	return on, nil
}

// slackHandler returns the handler of what people do in Slack, such as a click on a button.
func (at listenSettings) slackHandler(r *vokter.Router, log *slog.Logger) http.Handler {
	if at.slack == nil {
		return http.NotFoundHandler()
	}
	return slackapp.New(at.slack, r, log)
}

// announce writes the address and the tokens to the data directory, which the Router must own by then, and tells who
// waits for that.
func (l *listener) announce() error {
	if l == nil {
		return nil
	}
	if l.dir != "" {
		if err := manage.Announce(l.dir, l.addr, l.token, l.logins); err != nil {
			return err
		}
	}
	if l.announced != nil {
		l.announced(l.addr)
	}
	return nil
}

// stop closes the server and its connections.
func (l *listener) stop() {
	if l == nil {
		return
	}
	if l.dir != "" {
		manage.Withdraw(l.dir, l.addr, l.token)
	}
	_ = l.server.Close()
	l.api.Close() // waits for a backup, which fails now without its connection and removes its files
}

// routerStatus is the part of a Router that a listener shows to everybody.
type routerStatus interface {
	Ready() error
	Gauges() []flow.Gauge
}

// routes returns the handler of /healthz, /readyz and /metrics, of api, and of the requests of Slack, slack. All
// other requests go to site.
func routes(r routerStatus, api, slack, site http.Handler) http.Handler {
	public := http.NewServeMux()
	public.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	public.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch err := r.Ready(); {
		case err == nil:
			fmt.Fprintln(w, "ok")
		case errors.Is(err, vokter.ErrStopped): // the error of Run behind it may name a page
			http.Error(w, vokter.ErrStopped.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	public.Handle("GET /metrics", metricsHandler(r))
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		mux.Handle(path, public)
	}
	mux.Handle("/api/", api)
	mux.Handle(slackapp.Path, slack)
	mux.Handle("/", site)
	return mux
}

// metricsHandler serves the gauges of r, and figures of the Go runtime and of the process, in the text
// format of Prometheus.
func metricsHandler(r routerStatus) http.Handler {
	all := prometheus.NewRegistry()
	all.MustRegister(metrics.Collector(r.Gauges), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}
