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
	// silenceLimit is how long a connection may take for a request with its body, and for reading writtenAtOnce bytes
	// of its answer, before it can be closed in favor of others.
	silenceLimit = 100 * time.Millisecond
	// writtenAtOnce is how much of an answer is written at once: a client that reads so much is not silent.
	writtenAtOnce = 16 << 10
)

// limitedListener is a listener that limits the open connections of an HTTP server. Where there are too many, it closes
// the one that has been silent for longest: that waits for a whole request, body included, or whose client does not
// read the answer. If none is silent, the next one waits until a request has ended, since connections are not kept
// for another one then. So neither silent nor busy clients keep others out.
type limitedListener struct {
	net.Listener
	limit    int
	patience time.Duration

	mu      sync.Mutex
	changed sync.Cond
	closed  bool
	open    map[*limitedConn]*silence
}

// silence says since when a connection waits; its times are zero while it does not.
type silence struct {
	request, write time.Time
}

// since returns since when the connection has been silent; zero says that it is not.
func (s *silence) since() time.Time {
	if s.request.IsZero() || !s.write.IsZero() && s.write.Before(s.request) {
		return s.write
	}
	return s.request
}

// limitConnections limits the connections that server accepts from on. A silent one is closed only after it has
// waited for as long as patience says. The caller serves the listener that it returns.
func limitConnections(server *http.Server, on net.Listener, limit int, patient time.Duration) net.Listener {
	c := &limitedListener{Listener: on, limit: limit, patience: patient, open: make(map[*limitedConn]*silence)}
	c.changed.L = &c.mu
	server.ConnState = c.connStateChanged
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.Handler = c.awaitBodies(c.shareConnections(server.Handler))
	return c
}

// limitedConn is a connection whose writes count as waiting.
type limitedConn struct {
	net.Conn
	listener *limitedListener
}

func (c *limitedConn) Write(p []byte) (n int, err error) {
	defer c.listener.note(c, func(s *silence) { s.write = time.Time{} })
	for {
		c.listener.note(c, func(s *silence) { s.write = time.Now() })
		part := p[n:min(len(p), n+writtenAtOnce)]
		written, err := c.Conn.Write(part)
		if n += written; err != nil || n == len(p) {
			return n, err
		}
	}
}

// CloseWrite is for http.Server, which lets the client read an answer before it closes the connection.
func (c *limitedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// abort closes the connection. What its client has not read is dropped, so that it takes no memory of the system.
func (c *limitedConn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// shareConnections returns a handler that calls h. A connection ends with its request while all are taken, so that
// clients that ask without a pause keep nobody out.
func (c *limitedListener) shareConnections(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		full := len(c.open) >= c.limit
		c.mu.Unlock()
		if full {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// awaitBodies returns a handler that calls h. The connection of a request with a body counts as waiting until h has
// read the body, and after h if it did not: the server reads the rest then.
func (c *limitedListener) awaitBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*limitedConn); ok && r.ContentLength != 0 {
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

// note notes with set what an open connection waits for.
func (c *limitedListener) note(conn *limitedConn, set func(*silence)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.open[conn]; s != nil { // otherwise makeRoom has closed it
		set(s)
		c.changed.Broadcast()
	}
}

// setWaiting notes since when an open connection waits for a request; zero says that it has one.
func (c *limitedListener) setWaiting(conn *limitedConn, since time.Time) {
	c.note(conn, func(s *silence) { s.request = since })
}

func (c *limitedListener) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) >= c.limit && !c.closed {
		c.makeRoom()
	}
	conn := &limitedConn{accepted, c}
	c.open[conn] = &silence{request: time.Now()}
	return conn, nil
}

// makeRoom closes the connection that has been silent for longest, or waits until something has changed. c.mu is
// held.
func (c *limitedListener) makeRoom() {
	var oldest *limitedConn
	var silent time.Time
	for conn, s := range c.open {
		if since := s.since(); !since.IsZero() && (oldest == nil || since.Before(silent)) {
			oldest, silent = conn, since
		}
	}
	if oldest != nil {
		left := c.patience - time.Since(silent)
		if left <= 0 {
			delete(c.open, oldest)
			oldest.abort()
			return
		}
		defer time.AfterFunc(left, c.changed.Broadcast).Stop()
	}
	c.changed.Wait()
}

// connStateChanged is called when the state of a connection changes. It becomes active with a whole request.
func (c *limitedListener) connStateChanged(of net.Conn, state http.ConnState) {
	conn, ok := of.(*limitedConn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.setWaiting(conn, time.Time{})
	case http.StateIdle:
		c.setWaiting(conn, time.Now())
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, conn)
		c.changed.Broadcast()
	}
}

// Close closes the listener.
func (c *limitedListener) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.changed.Broadcast()
	return c.Listener.Close()
}
