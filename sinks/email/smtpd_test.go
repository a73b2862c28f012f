package email

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/vokter/vokter/pipeline/registry"
)

// mailServer is a real mail server, with TLS and a password, and what it took.
type mailServer struct {
	host string
	port int

	mu       sync.Mutex
	received []receivedMessage
	fault    fault
}

// fault is what goes wrong next.
type fault struct {
	at string // "AUTH", "MAIL", "RCPT" or "."
	do func(*smtp.Conn) error
}

// setFault makes the server call do once, at the step at.
func (m *mailServer) setFault(at string, do func(*smtp.Conn) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault{at, do}
}

// runFault calls the function that setFault has set for the step at, once.
func (s *serverSession) runFault(at string) error {
	s.m.mu.Lock()
	f := s.m.fault
	if f.at == at {
		s.m.fault = fault{}
	}
	s.m.mu.Unlock()
	if f.at != at {
		return nil
	}
	return f.do(s.c)
}

// receivedMessage is a message as it came.
type receivedMessage struct {
	from, to string
	body     []byte
}

// newMailServer starts a server that ends with the test; with implicit, TLS begins at once.
func newMailServer(t testing.TB, implicit bool, cert tls.Certificate) *mailServer {
	t.Helper()
	m := &mailServer{}
	server := smtp.NewServer(m)
	server.ErrorLog = log.New(io.Discard, "", 0)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := netip.MustParseAddrPort(l.Addr().String())
	m.host, m.port = a.Addr().String(), int(a.Port())
	if implicit {
		l = tls.NewListener(l, server.TLSConfig)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		l.Close() // Serve may not have begun
		server.Close()
		wg.Wait()
	})
	return m
}

// messages returns what came.
func (m *mailServer) messages() []receivedMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]receivedMessage(nil), m.received...)
}

// NewSession is called for each connection.
func (m *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &serverSession{m: m, c: c}, nil
}

type serverSession struct {
	m        *mailServer
	c        *smtp.Conn
	loggedIn bool
	message  receivedMessage
}

func (s *serverSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *serverSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != "vokter" || pass != password {
			return errors.New("wrong password")
		}
		s.loggedIn = true
		return s.runFault("AUTH")
	}), nil
}

func (s *serverSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	s.message.from = from
	return s.runFault("MAIL")
}

func (s *serverSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.message.to = to
	return s.runFault("RCPT")
}

func (s *serverSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.message.body = b
	if err := s.runFault("."); err != nil {
		return err
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.received = append(s.m.received, s.message)
	return nil
}

func (s *serverSession) Reset()        {}
func (s *serverSession) Logout() error { return nil }

var loopback = netip.MustParsePrefix("127.0.0.0/8")

const day = 24 * time.Hour

// Answers of a scripted server that are none.
const (
	hang    = "hang"    // nothing, until the other side goes
	drop    = "drop"    // the connection ends
	endless = "endless" // an answer that never ends
)

// scriptedServer is a mail server that says what a test wants, for what no real one would do.
type scriptedServer struct {
	// answers are by verb: "greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA",
	// "." and "QUIT", or by a whole line. What is not there is answered as by a good server.
	answers map[string]string
	// offers are the extensions that it names.
	offers string
	// cert makes STARTTLS possible; with implicit, TLS begins at once.
	cert     tls.Certificate
	implicit bool
	// onVerb is called when a verb has come, before it is answered.
	onVerb func(verb string)

	host     string
	port     int
	mu       sync.Mutex
	commands []string // lines, as they came
	raw      []byte   // what came first, before any TLS
}

// start serves until the test ends.
func (s *scriptedServer) start(t *testing.T) *scriptedServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := netip.MustParseAddrPort(l.Addr().String())
	s.host, s.port = a.Addr().String(), int(a.Port())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				s.serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return s
}

// recordingConn is a connection that keeps the first bytes that come.
type recordingConn struct {
	net.Conn
	s *scriptedServer
}

func (f recordingConn) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.raw == nil {
		f.s.raw = append(f.s.raw, p[:n]...)
	}
	return n, err
}

func (s *scriptedServer) serve(c net.Conn) {
	c = recordingConn{c, s}
	config := &tls.Config{Certificates: []tls.Certificate{s.cert}}
	if s.implicit {
		c = tls.Server(c, config)
	}
	r := bufio.NewReader(c)
	if !s.answer(c, r, "greeting", "220 scripted") {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, strings.TrimRight(line, "\r\n"))
		s.mu.Unlock()
		verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		good := map[string]string{"AUTH": "235 welcome", "STARTTLS": "220 go", "DATA": "354 go", "QUIT": "221 bye"}[verb]
		if good == "" {
			good = "250 fine"
		}
		if verb == "EHLO" && s.offers != "" {
			good = "250-scripted\r\n250 " + strings.ReplaceAll(s.offers, ",", "\r\n250 ")
			good = strings.Replace(good, "\r\n250 ", "\r\n250-", strings.Count(s.offers, ","))
		}
		if a, ok := s.answers[strings.TrimSpace(line)]; ok {
			good = a
		}
		if !s.answer(c, r, verb, good) || verb == "QUIT" {
			return
		}
		switch {
		case verb == "STARTTLS" && (s.answers[verb] == "" || strings.HasPrefix(s.answers[verb], "220")):
			c = tls.Server(c, config)
			r = bufio.NewReader(c)
		case verb == "DATA" && s.answers[verb] == "":
			for line := ""; line != ".\r\n"; {
				if line, err = r.ReadString('\n'); err != nil {
					return
				}
			}
			if !s.answer(c, r, ".", "250 taken") {
				return
			}
		}
	}
}

// answer says what the script has for verb, and reports whether the session goes on.
func (s *scriptedServer) answer(c net.Conn, r io.Reader, verb, good string) bool {
	if s.onVerb != nil {
		s.onVerb(verb)
	}
	a := good
	if scripted, ok := s.answers[verb]; ok {
		a = scripted
	}
	switch a {
	case hang:
		_, _ = io.Copy(io.Discard, r)
		return false
	case drop:
		return false
	case endless:
		for line := []byte("250-" + strings.Repeat("x", 1<<14) + "\r\n"); ; {
			if _, err := c.Write(line); err != nil {
				return false
			}
		}
	}
	_, err := io.WriteString(c, a+"\r\n")
	return err == nil
}

// commandLines returns what was said to the server.
func (s *scriptedServer) commandLines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

// hasCommand reports whether a line with verb was said to the server.
func (s *scriptedServer) hasCommand(verb string) bool {
	for _, l := range s.commandLines() {
		if strings.HasPrefix(strings.ToUpper(l), verb) {
			return true
		}
	}
	return false
}

// unencryptedConfig is a configuration for a server on this machine.
func unencryptedConfig(host string, port int) Config {
	return Config{Host: host, Port: port, TLS: Plain, From: "Vokter <vokter@sender.example>", To: registry.Texts{"ann@recipient.example"}}
}

// withLogin is c, with another way to encrypt and a password.
func withLogin(c Config, way string) Config {
	c.TLS, c.Username, c.Password = way, "vokter", registry.NewSecret(password)
	return c
}

const password = "correct-horse-battery"

// option alters the Config of a sink.
type option func(*Config)

func newEmail(t testing.TB, c Config, opts ...option) *Email {
	t.Helper()
	c.Allow = []netip.Prefix{loopback}
	for _, o := range opts {
		o(&c)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
