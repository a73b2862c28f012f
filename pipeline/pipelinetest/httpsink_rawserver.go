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

// rawServer is a TCP server that does what a script says, for answers that no HTTP server
// would give.
type rawServer struct {
	url      string
	requests atomic.Int64
	written  atomic.Int64 // bytes, by conn.repeat
	wg       sync.WaitGroup
}

// rawConn is one connection to a raw server.
type rawConn struct {
	net.Conn
	server *rawServer
	reader *bufio.Reader
}

// startRawServer runs script once for each connection. The server ends with the test.
func startRawServer(t *testing.T, script func(*rawConn)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + l.Addr().String()}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() {
				defer c.Close()
				script(&rawConn{Conn: c, server: s, reader: bufio.NewReader(c)})
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
func (c *rawConn) readRequest() bool {
	req, err := http.ReadRequest(c.reader)
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
func (c *rawConn) write(text string) bool {
	_, err := io.WriteString(c.Conn, text)
	return err == nil
}

// waitForClose returns when the other side has gone.
func (c *rawConn) waitForClose() { _, _ = io.Copy(io.Discard, c.reader) }

// reset breaks the connection.
func (c *rawConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
