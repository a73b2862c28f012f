package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/inspect/metrics"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/rest"
	"github.com/vokter/vokter/internal/slackapp"
	"github.com/vokter/vokter/internal/web"
	"github.com/vokter/vokter/pipeline/flow"
)

// listener is the HTTP server of a Router. It serves /healthz, /readyz and /metrics to
// everybody, the API to requests with its token, and the web page to users who log in with one. It may start before
// the Router runs. Without an address it serves all but the web page, at a socket in the data directory. A nil listener
// does nothing.
type listener struct {
	addr, token string
	log         *slog.Logger
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
// its web page is. Without an address it is a socket in the data directory. All but the address may be nil.
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

// start starts the listener, or prepares that of the data directory. It returns nil where there is neither an address
// nor a directory.
func (at listenSettings) start(ctx context.Context, r *vokter.Router, cfg vokter.Config) (*listener, error) {
	if at.addr == "" && cfg.Dir == "" {
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
	var on net.Listener
	if at.addr != "" {
		var err error
		if on, err = listen(ctx, at.addr); err != nil {
			return nil, err
		}
		cfg.Logger.Info("listening", "address", on.Addr().String())
	}
	api, err := manage.New(r, manage.Options{Process: client.Process{Data: data, Version: vokter.Version()}, Token: token, Access: at.access, Logins: at.logins, Sinks: at.sinks})
	if err != nil {
		if on != nil {
			err = errors.Join(err, on.Close())
		}
		return nil, err
	}
	l := &listener{token: token, log: cfg.Logger, api: api, logins: api.Logins(), announced: at.announced, dir: data, server: &http.Server{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}}
	if on == nil {
		l.server.Handler = routes(r, api, http.NotFoundHandler(), http.NotFoundHandler())
		return l, nil // announce listens, since the directory may be another process' until then
	}
	site := web.New(web.Options{API: api, Settings: at.web, Gauges: r.Gauges, Logger: cfg.Logger})
	l.server.Handler = at.web.Within(routes(r, api, at.slackHandler(r, cfg.Logger), site))
	l.serve(on, on.Addr().String())
	return l, nil
}

// serve serves on, whose address is addr for other processes.
func (l *listener) serve(on net.Listener, addr string) {
	l.addr = addr
	on = limitConnections(l.server, on, maxConnections, silenceLimit)
	go func() {
		if err := l.server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			l.log.Error("the listener failed", "error", err)
		}
	}()
}

// maxSocketPath is what all systems allow for the path of a socket, in bytes.
const maxSocketPath = 103

// socketFile in a data directory is the socket of a process without an address.
const socketFile = "socket"

// serveDirectory listens at the socket of the data directory, in place of one that a killed process left.
func (l *listener) serveDirectory() error {
	path := filepath.Join(l.dir, socketFile)
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	on, err := new(net.ListenConfig).Listen(context.Background(), "unix", path)
	if err != nil {
		if len(path) > maxSocketPath {
			err = fmt.Errorf("the path of a socket has at most some %d bytes, and %s has %d", maxSocketPath, path, len(path))
		}
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, on.Close())
	}
	l.serve(on, client.Unix+path)
	return nil
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
	if l.addr == "" {
		if err := l.serveDirectory(); err != nil {
			l.log.Warn("the verbs cannot ask this process while it runs, unless it has an address (listen)", "error", err)
			return nil
		}
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

// restServer serves the REST API of the first server. A nil restServer does nothing.
type restServer struct {
	on       net.Listener
	settings *config.Rest
	log      *slog.Logger
}

// openRest listens at the address of the REST API. It returns nil where c has none. Requests wait
// until serve is called.
func openRest(ctx context.Context, c *config.Config) (*restServer, error) {
	if c.Rest == nil {
		return nil, nil
	}
	on, err := listen(ctx, c.Rest.Listen)
	if err != nil {
		return nil, fmt.Errorf("rest %w", err)
	}
	return &restServer{on: on, settings: c.Rest, log: c.Router.Logger}, nil
}

// serve answers requests with s until ctx is done.
func (r *restServer) serve(ctx context.Context, s rest.Service) {
	if r == nil {
		return
	}
	server := &http.Server{
		Handler:           rest.New(s, rest.Options{Token: r.settings.Token, Logger: r.log}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	r.log.Info("serving the REST API", "address", r.on.Addr().String())
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(limitConnections(server, r.on, maxConnections, silenceLimit)); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		r.log.Error("the listener of the REST API failed", "error", err)
	}
}

// close stops listening.
func (r *restServer) close() {
	if r != nil {
		_ = r.on.Close() // serve may have closed it
	}
}
