package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/rest"
)

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
