package cli

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

const mailPassword = "S3CRETPASSWORD"

// mailServer takes mail for ann@example.com, and repeats passwords that are wrong.
type mailServer chan string

func (m mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m mailServer) AuthMechanisms() []string                    { return []string{sasl.Plain} }

func (m mailServer) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != "bot" {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong password " + pass}
		}
		return nil
	}), nil
}

func (m mailServer) Mail(string, *smtp.MailOptions) error { return nil }

func (m mailServer) Rcpt(to string, _ *smtp.RcptOptions) error {
	if to != "ann@example.com" {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func (m mailServer) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	m <- string(b)
	return err
}

func (m mailServer) Reset()        {}
func (m mailServer) Logout() error { return nil }

// TestSinkTestByMail runs in a process of its own, which trusts the server's certificate.
func TestSinkTestByMail(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	t.Setenv("SSL_CERT_FILE", file(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))))
	m := make(mailServer, 1)
	server := smtp.NewServer(m)
	server.TLSConfig = web.TLS
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = server.Serve(l) }()
	for name, tt := range map[string]struct {
		user, to string
		code     int
		want     string // in the one line
	}{
		"delivered":         {"bot", "ann@example.com", 0, "mail: delivered, answered 250 2.0.0 OK: queued ("},
		"wrong password":    {"bob", "ann@example.com", 1, "sink mail: the user name or password is refused: the server answered 535 5.7.8 wrong password ***; check its token, secret or password, and write the right one into the file; delivery tries again"},
		"unknown recipient": {"bot", "bob@example.com", 1, "sink mail: the server answered 550 5.1.1 no such user; delivery would give this receiver up"},
	} {
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		path := file(t, "c.yaml", fmt.Sprintf("allow: {sinks: [%s]}\nsinks:\n  mail: {email: {host: 127.0.0.1, port: %s, username: %s, password: %s, from: v@example.com, to: %s}}\n",
			loopback, port, tt.user, mailPassword, tt.to))
		got := process(t, "sink", "test", "mail", "-c", path)
		line := got.stdout + got.stderr
		if got.code != tt.code || !strings.Contains(line, tt.want) || strings.Count(line, "\n") != 1 || strings.Contains(line, mailPassword) {
			t.Errorf("%s: got %+v, want %d and %s", name, got, tt.code, tt.want)
		}
		if got.code != 0 {
			continue
		}
		if mail := <-m; !strings.Contains(mail, "Subject: Test: ") {
			t.Errorf("%s: the message is not marked:\n%s", name, mail)
		}
	}
}
