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
	maxConnections = 1024
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
	patience time.Duration
	began    time.Time
	// places has an element for each open connection.
	places chan struct{}
	closed chan struct{}
	close  sync.Once

	mu   sync.Mutex
	open map[*limitedConn]bool
}

// limitConnections limits the connections that server accepts from on. A silent one is closed only after it has
// waited for as long as patience says. The caller serves the listener that it returns.
func limitConnections(server *http.Server, on net.Listener, limit int, patient time.Duration) net.Listener {
	c := &limitedListener{
		Listener: on, patience: patient, began: time.Now(), places: make(chan struct{}, limit), open: make(map[*limitedConn]bool), closed: make(chan struct{}),
	}
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

// shareConnections returns a handler that calls h. A connection ends with its request while more than an eighth are
// taken, so that clients that ask without a pause keep nobody out.
func (c *limitedListener) shareConnections(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(c.places) > cap(c.places)/8 {
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
	if !c.takePlace() {
		_ = accepted.Close()
		return nil, net.ErrClosed
	}
	conn := &limitedConn{Conn: accepted, listener: c}
	conn.awaits.Store(int64(c.clock()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	return conn, nil
}

// takePlace takes a place for a connection. If there is none, it waits until one is free, or until a connection has
// been silent for long enough. It returns false if the listener was closed.
func (c *limitedListener) takePlace() bool {
	for {
		select {
		case c.places <- struct{}{}:
			return true
		default:
		}
		oldest, silent := c.mostSilent()
		left := c.patience - silent
		if oldest != nil && left <= 0 {
			oldest.abort()
			c.drop(oldest)
			continue
		}
		timer := time.NewTimer(max(left, time.Millisecond))
		select {
		case c.places <- struct{}{}:
			timer.Stop()
			return true
		case <-timer.C:
		case <-c.closed:
			timer.Stop()
			return false
		}
	}
}

// mostSilent returns the connection that has been silent for longest, or nil if none is silent.
func (c *limitedListener) mostSilent() (oldest *limitedConn, silent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if d := conn.silent(); d > silent {
			oldest, silent = conn, d
		}
	}
	return oldest, silent
}

// drop gives the place of a connection free, unless that was done before.
func (c *limitedListener) drop(conn *limitedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[conn] {
		delete(c.open, conn)
		<-c.places
	}
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
		c.drop(conn)
	}
}

// Close closes the listener.
func (c *limitedListener) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Listener.Close()
}
