package pipelinetest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// raw is a TCP server that does what a script says, for answers that no HTTP server
// would give.
type raw struct {
	url      string
	requests atomic.Int64
	written  atomic.Int64 // bytes, by conn.repeat
	wg       sync.WaitGroup
}

// conn is one connection to a raw server.
type conn struct {
	net.Conn
	server *raw
	r      *bufio.Reader
}

// newRaw runs script once for each connection. The server ends with the test.
func newRaw(t *testing.T, script func(*conn)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &raw{url: "http://" + l.Addr().String()}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() {
				defer c.Close()
				script(&conn{Conn: c, server: s, r: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.wg.Wait()
	})
	return s
}

// readRequest reads one request to its end and reports whether there was one.
func (c *conn) readRequest() bool {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	c.server.requests.Add(1)
	return true
}

// write sends text and reports whether somebody is there to read it.
func (c *conn) write(text string) bool {
	_, err := io.WriteString(c.Conn, text)
	return err == nil
}

// wait returns when the other side has gone.
func (c *conn) wait() { _, _ = io.Copy(io.Discard, c.r) }

// reset breaks the connection.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
