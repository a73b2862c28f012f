package pipelinetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// maxMemory is what one delivery may allocate, whatever it is answered.
const maxMemory = 4 << 20

// deliveryTimeout is the timeout of deliveries that nothing else ends.
const deliveryTimeout = 300 * time.Millisecond

func (s *httpSuite) testBoundedAnswers(t *testing.T) {
	bomb := gzipBomb(t)
	block := strings.Repeat("x", 1<<15)
	header := "X-A: " + strings.Repeat("x", 1000) + "\r\n"
	for name, script := range map[string]func(*rawConn){
		"hang":            func(*rawConn) {},
		"endless header":  func(c *rawConn) { c.writeForever("HTTP/1.1 200 OK\r\n", header) },
		"endless line":    func(c *rawConn) { c.writeForever("HTTP/1.1 200 OK\r\nX: ", block) },
		"endless 1xx":     func(c *rawConn) { c.writeForever("", "HTTP/1.1 103 Early Hints\r\n\r\n") },
		"header in drips": func(c *rawConn) { c.write("HTTP/1.1 200 O") },
		"endless body":    func(c *rawConn) { c.writeForever("HTTP/1.1 500 Bad\r\n\r\n", block) },
		"gzip bomb": func(c *rawConn) {
			c.writeForever("HTTP/1.1 500 Bad\r\nContent-Encoding: gzip\r\n\r\n", bomb)
		},
		"no http": func(c *rawConn) { c.writeForever("", block) },
	} {
		t.Run(name, func(t *testing.T) {
			server := startRawServer(t, func(c *rawConn) {
				if c.readRequest() {
					script(c)
					c.waitForClose()
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), deliveryTimeout)
			defer cancel()
			sink := s.sinkFor(t, server.url)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := deliver(ctx, t, sink, newNotification("a"))
			runtime.ReadMemStats(&after)
			wantClass(t, err, failure.ClassRetry)
			if name == "hang" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want context.DeadlineExceeded", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > maxMemory {
				t.Errorf("%d bytes were allocated, want at most %d", got, maxMemory)
			}
		})
	}
}

// testEndlessSuccess answers 200 with a body that does not end: the status has said it all,
// so the sink neither waits for the rest nor reads it.
func (s *httpSuite) testEndlessSuccess(t *testing.T) {
	if len(s.Imposters) > 0 {
		t.Skip("the status does not say it all")
	}
	const enough = 32 << 20 // far more than the buffers between the two
	for name, script := range map[string]func(*rawConn){
		"slow": func(c *rawConn) { c.write("HTTP/1.1 200 OK\r\n\r\nabc") },
		"fast": func(c *rawConn) { c.writeForever("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1<<15)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := startRawServer(t, func(c *rawConn) {
				if c.readRequest() {
					script(c)
					c.waitForClose()
				}
			})
			if err := deliver(t.Context(), t, s.sinkFor(t, server.url), newNotification("a")); err != nil {
				t.Errorf("got %v, want delivered", err)
			}
			if got := server.written.Load(); got > enough {
				t.Errorf("%d bytes of the body were taken", got)
			}
		})
	}
}

// writeForever writes start, and then again and again the same text until nobody reads.
func (c *rawConn) writeForever(start, again string) {
	b := []byte(again) // the memory of the server counts too
	for ok := c.write(start); ok; {
		n, err := c.Write(b)
		c.server.written.Add(int64(n))
		ok = err == nil
	}
}

// gzipBomb returns a megabyte of zeros, packed; members of a gzip stream can follow each
// other.
func gzipBomb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, z)
	return b.String()
}

func (s *httpSuite) testResets(t *testing.T) {
	for name, tt := range map[string]struct {
		script    func(*rawConn)
		ambiguous bool
		requests  int64
	}{
		"before the request is read": {func(c *rawConn) { c.reset() }, false, 0},
		"after the request is read":  {func(c *rawConn) { c.readRequest(); c.reset() }, true, 1},
		"within the answer":          {func(c *rawConn) { c.readRequest(); c.write("HTTP/1.1 200 OK\r\nConte"); c.reset() }, true, 1},
		"end without an answer":      {func(c *rawConn) { c.readRequest() }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := startRawServer(t, tt.script)
			err := deliver(t.Context(), t, s.sinkFor(t, server.url), newNotification("a"))
			wantClass(t, err, failure.ClassRetry)
			if tt.ambiguous && !failure.IsAmbiguous(err) {
				t.Errorf("%v is not marked as ambiguous", err)
			}
			if got := server.requests.Load(); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
		})
	}
}

// testKeptAliveDies has a connection break under its second request: the transport must
// not send it again by itself, since the receiver may have it.
func (s *httpSuite) testKeptAliveDies(t *testing.T) {
	accepted := httptest.NewRecorder()
	s.Accept(accepted, httptest.NewRequest(http.MethodPost, "/", nil))
	answer := accepted.Result()
	answer.ContentLength = int64(accepted.Body.Len()) // without it the connection would end
	server := startRawServer(t, func(c *rawConn) {
		c.readRequest()
		_ = answer.Write(c)
		c.readRequest()
		c.reset()
	})
	sink := s.sinkFor(t, server.url)
	if err := deliver(t.Context(), t, sink, newNotification("a")); err != nil {
		t.Fatal(err)
	}
	err := deliver(t.Context(), t, sink, newNotification("b"))
	wantClass(t, err, failure.ClassRetry)
	if !failure.IsAmbiguous(err) {
		t.Errorf("%v is not marked as ambiguous", err)
	}
	if got := server.requests.Load(); got != 2 {
		t.Errorf("the server saw %d requests, want 2", got)
	}
}

// testManyFaults delivers through a receiver that fails in every way now and then. Each
// notification arrives; nothing is left over.
func (s *httpSuite) testManyFaults(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	var r requestRecorder
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch calls.Add(1) % 100 {
		case 10:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 20:
			panic(http.ErrAbortHandler)
		case 30:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case 40:
			_, _ = io.Copy(io.Discard, req.Body) // only then does the server notice that the sink goes
			<-req.Context().Done()
		case 50:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.CopyN(w, rand.NewChaCha8([32]byte{}), 1<<20)
		default:
			r.record(t, s.Decode, req)
			s.Accept(w, req)
		}
	}))
	sink := s.sinkFor(t, server.URL)
	deliverThousand(t, r.arrived, func(n pipeline.Notification) error {
		var err error
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), deliveryTimeout)
			err = deliver(ctx, t, sink, n)
			cancel()
			if err == nil {
				break
			}
		}
		return err
	})
	server.Close()
	waitForGoroutines(t, goroutines)
}

// waitForGoroutines waits until there are no more goroutines than before.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(until) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}
