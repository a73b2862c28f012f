package pipelinetest

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/testcert"
)

// requestRecorder decodes and keeps the requests that a server gets.
type requestRecorder struct {
	mu       sync.Mutex
	seen     []Arrived
	holdNext func() // called by the next request, which is not taken; nil takes it
}

// newFake returns a sink and a server that accepts what the sink sends.
func (s *httpSuite) newFake(t *testing.T) SinkFake {
	t.Helper()
	var r requestRecorder
	url := startServer(t, func(w http.ResponseWriter, req *http.Request) {
		if held := r.setHold(nil); held != nil {
			held()
			return
		}
		r.record(t, s.Decode, req)
		s.Accept(w, req)
	})
	return SinkFake{
		Sink: s.sinkFor(t, url), Got: r.arrived, Secrets: secrets, ForPeople: s.ForPeople,
		Hold: func() (<-chan struct{}, func()) {
			began, over := make(chan struct{}), make(chan struct{})
			r.setHold(func() { close(began); <-over })
			return began, func() { close(over) }
		},
	}
}

// setHold sets the function that the next request calls, and returns the one that was set before.
func (r *requestRecorder) setHold(held func()) (before func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.holdNext = r.holdNext, held
	return before
}

// record decodes a request and keeps it.
func (r *requestRecorder) record(t *testing.T, decode func(http.Header, []byte) (string, []string, error), req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Errorf("reading a request: %v", err)
		return
	}
	id, texts, err := decode(req.Header, body)
	if err != nil {
		t.Errorf("decoding a request: %v", err)
	}
	if req.Header.Get("X-Injected") != "" {
		t.Errorf("%.40q became a header", texts)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, Arrived{id, texts})
}

func (r *requestRecorder) arrived() []Arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// hostileTexts are texts that pages could hold.
var hostileTexts = []string{
	"<!channel> <@U123> <http://evil.example|bank.example>", "</script><script>alert(1)</script>", "{{.}} {{range 9}}{{end}}",
	"%s %d %!x(MISSING) %", "a+b&c=d;e", "X-Header: a\r\nX-Injected: b\r\n\r\nbody", "nul\x00bell\x07", "turn\u202Earound\u2066",
	"\xff\xfe invalid \xc3", "\u2028\u2029", `quote " and \ and '`, "*bold* _it_ ~s~ `code` :emoji: #channel @here", "data:\x1b[31mred",
}

// sameText reports whether got is the text of a page as it is, in valid UTF-8.
func sameText(got, text string) bool {
	// A run of invalid bytes may become one mark or one for each.
	norm := func(s string) string { return strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD") }
	return norm(got) == norm(strings.ToValidUTF8(text, "\uFFFD"))
}

// readableText reports whether got holds parts of the text of a page, in valid UTF-8, with
// nothing in it that steers a screen.
func readableText(got, text string) bool {
	if !utf8.ValidString(got) || strings.ContainsFunc(got, controlsTerminal) {
		return false
	}
	rest := visibleText(text)
	for part := range strings.SplitSeq(strings.ReplaceAll(got, "...", "…"), "…") {
		_, after, ok := strings.Cut(rest, visibleText(part))
		if !ok {
			return false
		}
		rest = after
	}
	return visibleText(got) != "" || visibleText(text) == ""
}

// controlsTerminal reports whether r does more to a screen than appear there, such as reverse the text.
func controlsTerminal(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069'
}

// visibleText is what there is to see of s, without blanks.
func visibleText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}

func (s *httpSuite) testNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for name, rawURL := range map[string]string{
		"refused":        "http://" + closed,
		"no such host":   "http://" + strings.Repeat("long", 20) + ".example", // no look-up is made for such a label
		"https to plain": strings.Replace(startServer(t, s.Accept), "http:", "https:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			wantClass(t, deliver(t.Context(), t, s.sinkFor(t, rawURL), newNotification("a")), failure.ClassRetry)
		})
	}
}

func (s *httpSuite) testCertificates(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		host          string
		from, until   time.Duration
		trust, accept bool
	}{
		"good":       {"127.0.0.1", -day, day, true, true},
		"unknown":    {"127.0.0.1", -day, day, false, false},
		"expired":    {"127.0.0.1", -2 * day, -day, true, false},
		"wrong host": {"192.0.2.1", -day, day, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, pool := testcert.New(t, tt.host, time.Now().Add(tt.from), time.Now().Add(tt.until))
			server := httptest.NewUnstartedServer(s.Accept)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
			server.StartTLS()
			t.Cleanup(server.Close)
			o := HTTPSinkOptions{Allow: loopback, Secret: keySecret}
			if tt.trust {
				o.RootCAs = pool
			}
			err := deliver(t.Context(), t, s.newSink(t, server.URL+"/"+pathSecret, o), newNotification("a"))
			if tt.accept {
				if err != nil {
					t.Errorf("got %v, want delivered", err)
				}
				return
			}
			wantClass(t, err, failure.ClassRetry)
			if err != nil && !strings.Contains(err.Error(), "certificate") {
				t.Errorf("%q does not name the certificate", err)
			}
			if !failure.TellsAtOnce(err) {
				t.Errorf("%q is not told at once, though no later attempt mends it", err)
			}
		})
	}
}

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
