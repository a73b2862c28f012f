package email

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
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
