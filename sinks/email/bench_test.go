package email

import (
	"fmt"
	"testing"

	gomail "github.com/wneessen/go-mail"
)

// BenchmarkDeliver compares the sink with a bare client of go-mail, which sends a message
// of the same size over a connection of its own to the same server.
func BenchmarkDeliver(b *testing.B) {
	cert, pool := trusted(b)
	for _, way := range []string{StartTLS, Implicit} {
		m := newMailbox(b, way == Implicit, cert)
		e := build(b, signedIn(plain(m.host, m.port), way), pool)
		b.Run(way+"/sink", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				n := sample()
				n.ID = fmt.Sprint("N", i)
				if err := e.Deliver(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
		})
		letters := m.letters()
		last := parse(b, letters[len(letters)-1].body).parts
		b.Run(way+"/bare", func(b *testing.B) {
			for b.Loop() {
				if err := sendBare(m, e, way, last["text/plain"], last["text/html"]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sendBare sends a message as the manual of go-mail has it.
func sendBare(m *mailbox, e *Email, way, text, html string) error {
	opts := []gomail.Option{
		gomail.WithPort(m.port), gomail.WithTLSConfig(e.tls), gomail.WithTLSPolicy(gomail.TLSMandatory),
		gomail.WithUsername("vokter"), gomail.WithPassword(password), gomail.WithSMTPAuth(gomail.SMTPAuthPlain),
	}
	if way == Implicit {
		opts = append(opts, gomail.WithSSL())
	}
	c, err := gomail.NewClient(m.host, opts...)
	if err != nil {
		return err
	}
	msg := gomail.NewMsg()
	if err := msg.From("vokter@sender.example"); err != nil {
		return err
	}
	if err := msg.To("ann@recipient.example"); err != nil {
		return err
	}
	msg.Subject("a subject")
	msg.SetBodyString(gomail.TypeTextPlain, text)
	msg.AddAlternativeString(gomail.TypeTextHTML, html)
	return c.DialAndSend(msg)
}
