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

// mailbox is a real mail server, with TLS and a password, and what it took.
type mailbox struct {
	host string
	port int

	mu    sync.Mutex
	taken []letter
	fault fault
}

// fault is what goes wrong next.
type fault struct {
	at string // "AUTH", "MAIL", "RCPT" or "."
	do func(*smtp.Conn) error
}

// arrange makes the next attempt meet do.
func (m *mailbox) arrange(at string, do func(*smtp.Conn) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault{at, do}
}

// meet does what was arranged, once.
func (s *session) meet(at string) error {
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

// letter is a message as it came.
type letter struct {
	from, to string
	body     []byte
}

// newMailbox starts a server that ends with the test; with implicit, TLS begins at once.
func newMailbox(t testing.TB, implicit bool, cert tls.Certificate) *mailbox {
	t.Helper()
	m := &mailbox{}
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

// letters returns what came.
func (m *mailbox) letters() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]letter(nil), m.taken...)
}

// NewSession is called for each connection.
func (m *mailbox) NewSession(c *smtp.Conn) (smtp.Session, error) { return &session{m: m, c: c}, nil }

type session struct {
	m      *mailbox
	c      *smtp.Conn
	signed bool
	letter letter
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != "vokter" || pass != password {
			return errors.New("wrong password")
		}
		s.signed = true
		return s.meet("AUTH")
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.signed {
		return smtp.ErrAuthRequired
	}
	s.letter.from = from
	return s.meet("MAIL")
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.to = to
	return s.meet("RCPT")
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.letter.body = b
	if err := s.meet("."); err != nil {
		return err
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.taken = append(s.m.taken, s.letter)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

var loopback = netip.MustParsePrefix("127.0.0.0/8")

const day = 24 * time.Hour

// Answers of a scripted server that are none.
const (
	hang    = "hang"    // nothing, until the other side goes
	drop    = "drop"    // the connection ends
	endless = "endless" // an answer that never ends
)

// scripted is a mail server that says what a test wants, for what no real one would do.
type scripted struct {
	// answers are by verb: "greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA",
	// "." and "QUIT", or by a whole line. What is not there is answered as by a good server.
	answers map[string]string
	// offers are the extensions that it names.
	offers string
	// cert makes STARTTLS possible; with implicit, TLS begins at once.
	cert     tls.Certificate
	implicit bool
	// on is called when a verb has come, before it is answered.
	on func(verb string)

	host string
	port int
	mu   sync.Mutex
	said []string // lines, as they came
	raw  []byte   // what came first, before any TLS
}

// start serves until the test ends.
func (s *scripted) start(t *testing.T) *scripted {
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

// firstBytes is a connection that keeps what comes first.
type firstBytes struct {
	net.Conn
	s *scripted
}

func (f firstBytes) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.raw == nil {
		f.s.raw = append(f.s.raw, p[:n]...)
	}
	return n, err
}

func (s *scripted) serve(c net.Conn) {
	c = firstBytes{c, s}
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
		s.said = append(s.said, strings.TrimRight(line, "\r\n"))
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

// answer says what the script has for verb, and reports whether the talk goes on.
func (s *scripted) answer(c net.Conn, r io.Reader, verb, good string) bool {
	if s.on != nil {
		s.on(verb)
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

// lines returns what was said to the server.
func (s *scripted) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.said...)
}

// heard reports whether a line with verb was said to the server.
func (s *scripted) heard(verb string) bool {
	for _, l := range s.lines() {
		if strings.HasPrefix(strings.ToUpper(l), verb) {
			return true
		}
	}
	return false
}

// plain is a configuration for a server on this machine.
func plain(host string, port int) Config {
	return Config{Host: host, Port: port, TLS: Plain, From: "Vokter <vokter@sender.example>", To: registry.Texts{"ann@recipient.example"}}
}

// signedIn is c, with another way to encrypt and a password.
func signedIn(c Config, way string) Config {
	c.TLS, c.Username, c.Password = way, "vokter", registry.NewSecret(password)
	return c
}

const password = "correct-horse-battery"

// option alters the Config of a sink.
type option func(*Config)

func build(t testing.TB, c Config, opts ...option) *Email {
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
