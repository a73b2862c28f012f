package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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
// for another one while many are open. So neither silent nor busy clients keep others out.
type limitedListener struct {
	net.Listener
	limit    int
	patience time.Duration

	began time.Time
	// crowded says that more than half of the connections are taken.
	crowded atomic.Bool
	mu      sync.Mutex
	changed sync.Cond // a connection was closed, or the listener
	closed  bool
	open    map[*limitedConn]bool
}

// limitConnections limits the connections that server accepts from on. A silent one is closed only after it has
// waited for as long as patience says. The caller serves the listener that it returns.
func limitConnections(server *http.Server, on net.Listener, limit int, patient time.Duration) net.Listener {
	c := &limitedListener{Listener: on, limit: limit, patience: patient, open: make(map[*limitedConn]bool), began: time.Now()}
	c.changed.L = &c.mu
	server.ConnState = c.connStateChanged
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.Handler = c.awaitBodies(c.shareConnections(server.Handler))
	return c
}

// limitedConn is a connection that knows since when it is silent.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	// awaits and writes are since when it waits for a request, and for its client to read; 0 says that it does not.
	// They count from listener.began. They have no lock, which busy connections would wait for.
	awaits, writes atomic.Int64
}

// silent returns for how long the connection has been silent.
func (c *limitedConn) silent() time.Duration {
	since := c.awaits.Load()
	if w := c.writes.Load(); since == 0 || w != 0 && w < since {
		since = w
	}
	if since == 0 {
		return 0
	}
	return c.listener.clock() - time.Duration(since)
}

func (c *limitedConn) Write(p []byte) (n int, err error) {
	defer c.writes.Store(0)
	for {
		c.writes.Store(int64(c.listener.clock()))
		written, err := c.Conn.Write(p[n:min(len(p), n+writtenAtOnce)])
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

// shareConnections returns a handler that calls h. A connection ends with its request while more than half are taken, so that
// clients that ask without a pause keep nobody out.
func (c *limitedListener) shareConnections(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.crowded.Load() {
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
			conn.awaits.Store(int64(c.clock()))
			r.Body = &awaitedBody{r.Body, func() { conn.awaits.Store(0) }}
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

// clock returns the time since the listener began, which is never 0.
func (c *limitedListener) clock() time.Duration { return time.Since(c.began) + 1 }

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
	conn := &limitedConn{Conn: accepted, listener: c}
	conn.awaits.Store(int64(c.clock()))
	c.open[conn] = true
	c.crowded.Store(len(c.open) > c.limit/2)
	return conn, nil
}

// makeRoom closes the connection that has been silent for longest, or waits until one may have been silent for long
// enough, or was closed. c.mu is held.
func (c *limitedListener) makeRoom() {
	var oldest *limitedConn
	var silent time.Duration
	for conn := range c.open {
		if d := conn.silent(); d > silent {
			oldest, silent = conn, d
		}
	}
	left := c.patience - silent
	if oldest != nil && left <= 0 {
		delete(c.open, oldest)
		oldest.abort()
		return
	}
	defer time.AfterFunc(max(left, time.Millisecond), c.wake).Stop()
	c.changed.Wait()
}

// wake wakes makeRoom. It takes the lock, so that makeRoom waits already.
func (c *limitedListener) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// connStateChanged is called when the state of a connection changes. It becomes active with a whole request.
func (c *limitedListener) connStateChanged(of net.Conn, state http.ConnState) {
	conn, ok := of.(*limitedConn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		conn.awaits.Store(0)
	case http.StateIdle:
		conn.awaits.Store(int64(c.clock()))
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, conn)
		c.crowded.Store(len(c.open) > c.limit/2)
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
