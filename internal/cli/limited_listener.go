package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxConnections limits the open connections of a server, so that file descriptors remain for fetching.
	maxConnections = 256
	// silenceLimit is how long a connection may take for a request with its body before it can be closed in favor of
	// others.
	silenceLimit = 100 * time.Millisecond
)

// limitedListener is a listener that limits the open connections of an HTTP server. Where there are too many, it closes
// the one that has waited for longest without a whole request, body included, so that silent connections keep nobody
// out. If all have requests, the next one waits.
type limitedListener struct {
	net.Listener
	limit    int
	patience time.Duration

	mu      sync.Mutex
	changed sync.Cond
	closed  bool
	// open says since when the open connections have waited for a request; zero for those that have one.
	open map[net.Conn]time.Time
}

// limitConnections limits the connections that server accepts from on. A silent one is closed only after it has
// waited for as long as patience says. The caller serves the listener that it returns.
func limitConnections(server *http.Server, on net.Listener, limit int, patient time.Duration) net.Listener {
	c := &limitedListener{Listener: on, limit: limit, patience: patient, open: make(map[net.Conn]time.Time)}
	c.changed.L = &c.mu
	server.ConnState = c.connStateChanged
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.Handler = c.awaitBodies(server.Handler)
	return c
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// awaitBodies returns a handler that calls h. The connection of a request with a body counts as waiting until h has
// read the body, and after h if it did not: the server reads the rest then.
func (c *limitedListener) awaitBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok && r.ContentLength != 0 {
			c.setWaiting(conn, time.Now())
			r.Body = &awaitedBody{r.Body, func() { c.setWaiting(conn, time.Time{}) }}
		}
		h.ServeHTTP(w, r)
	})
}

// awaitedBody calls ended when it has been read.
type awaitedBody struct {
	io.ReadCloser
	ended func()
}

func (b *awaitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended()
	}
	return n, err
}

// setWaiting notes since when an open connection waits for a request; zero says that it has one.
func (c *limitedListener) setWaiting(conn net.Conn, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[conn]; open {
		c.open[conn] = since
		c.changed.Broadcast()
	}
}

func (c *limitedListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) >= c.limit && !c.closed {
		c.makeRoom()
	}
	c.open[conn] = time.Now()
	return conn, nil
}

// makeRoom closes the connection that has been silent for longest, or waits until something has changed. c.mu is
// held.
func (c *limitedListener) makeRoom() {
	var oldest net.Conn
	for conn, since := range c.open {
		if !since.IsZero() && (oldest == nil || since.Before(c.open[oldest])) {
			oldest = conn
		}
	}
	if oldest != nil {
		left := c.patience - time.Since(c.open[oldest])
		if left <= 0 {
			delete(c.open, oldest)
			_ = oldest.Close()
			return
		}
		defer time.AfterFunc(left, c.changed.Broadcast).Stop()
	}
	c.changed.Wait()
}

// connStateChanged is called when the state of a connection changes. It becomes active with a whole request.
func (c *limitedListener) connStateChanged(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[conn]; !open {
		return // makeRoom has closed it
	}
	switch state {
	case http.StateActive:
		c.open[conn] = time.Time{}
	case http.StateIdle:
		c.open[conn] = time.Now()
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	c.changed.Broadcast()
}

// Close closes the listener.
func (c *limitedListener) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.changed.Broadcast()
	return c.Listener.Close()
}
