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
func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{m: m}, nil }

type session struct {
	m      *mailbox
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
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.signed {
		return smtp.ErrAuthRequired
	}
	s.letter.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.letter.body = b
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.taken = append(s.m.taken, s.letter)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }
