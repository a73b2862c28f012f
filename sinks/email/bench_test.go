package email

import (
	"fmt"
	"testing"

	gomail "github.com/wneessen/go-mail"

	"github.com/vokter/vokter/test/beside"
)

// BenchmarkDeliver compares the sink with a bare client of go-mail, which sends a message
// of the same size over a connection of its own to the same server. Both take turns, so that
// what else the machine does counts for both.
func BenchmarkDeliver(b *testing.B) {
	cert, pool := trusted(b)
	for _, way := range []string{StartTLS, Implicit} {
		b.Run(way, func(b *testing.B) {
			m := newMailbox(b, way == Implicit, cert)
			e := build(b, signedIn(plain(m.host, m.port), way), pool)
			if err := e.Deliver(b.Context(), sample()); err != nil {
				b.Fatal(err)
			}
			parts := parse(b, m.letters()[0].body).parts
			i := 0
			beside.Run(b, 1, func() error {
				n := sample()
				n.ID = fmt.Sprint("N", i)
				i++
				return e.Deliver(b.Context(), n)
			}, func() error { return sendBare(m, e, way, parts["text/plain"], parts["text/html"]) })
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
