package email

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/test/beside"
)

func TestValidate(t *testing.T) {
	good := Config{Host: "smtp.example.com", From: "vokter@example.com", To: registry.Texts{"ann@example.com"}}
	secret := registry.NewSecret("SECRET")
	for _, tt := range []struct {
		alter  func(*Config)
		fields []string
	}{
		{func(*Config) {}, nil},
		{func(c *Config) { c.Host, c.TLS, c.Port = "::1", Implicit, 65535 }, nil},
		{func(c *Config) { c.Host, c.TLS = "127.0.0.1", Plain }, nil},
		{func(c *Config) { c.Host, c.Helo = "mail_relay", "[127.0.0.1]" }, nil},
		{func(c *Config) { c.Username, c.Password = "me", secret }, nil},
		{func(c *Config) {
			c.From, c.To = "Vokter at Work <vokter@example.com>", registry.Texts{`"Ann, Bob's boss" <ann@example.com>`}
		}, nil},
		{func(c *Config) { c.ListUnsubscribe, c.SubjectPrefix = "mailto:off@example.com", "[vokter]" }, nil},
		{func(c *Config) { *c = Config{} }, []string{"host", "from", "to"}},
		{func(c *Config) { c.Host = "smtp.example.com:25" }, []string{"host"}},
		{func(c *Config) { c.Host = "smtp://smtp.example.com" }, []string{"host"}},
		{func(c *Config) { c.Host = "unix:///run/mail" }, []string{"host"}},
		{func(c *Config) { c.Host = "a\r\nb" }, []string{"host"}},
		{func(c *Config) { c.Port = -1 }, []string{"port"}},
		{func(c *Config) { c.Port = 65536 }, []string{"port"}},
		{func(c *Config) { c.TLS = "opportunistic" }, []string{"tls"}},
		{func(c *Config) { c.Username = "me" }, []string{"password"}},
		{func(c *Config) { c.Password = secret }, []string{"username"}},
		{func(c *Config) { c.Username, c.Password, c.TLS = "me", secret, Plain }, []string{"username"}},
		{func(c *Config) { c.From = "vokter" }, []string{"from"}},
		{func(c *Config) { c.From = "vokter@exämple.com" }, []string{"from"}},
		{func(c *Config) { c.To = registry.Texts{"a@example.com, b@example.com"} }, []string{"to"}},
		{func(c *Config) { c.To = registry.Texts{"a@example.com\r\nBcc: b@example.com"} }, []string{"to"}},
		{func(c *Config) { c.To = registry.Texts{`"a b"@example.com`} }, []string{"to"}},
		{func(c *Config) { c.To = registry.Texts{"ann@example.com", "Bob <bob@example.com>"} }, nil},
		{func(c *Config) { c.To = registry.Texts{"ann@example.com", "bob", "Ann <ann@example.com>"} }, []string{"to[1]", "to[2]"}},
		{func(c *Config) { c.To = make(registry.Texts, 101) }, []string{"to"}},
		{func(c *Config) { c.ReplyTo = "Team <team@example.com>" }, nil},
		{func(c *Config) { c.ReplyTo = "team" }, []string{"reply_to"}},
		{func(c *Config) { c.ReplyTo = "a@example.com\r\nBcc: b@example.com" }, []string{"reply_to"}},
		{func(c *Config) { c.ListID = "Alerts <alerts.example.com>" }, nil},
		{func(c *Config) { c.ListID = "alerts" }, []string{"list_id"}},
		{func(c *Config) { c.ListID = "a\r\nBcc: b <alerts.example.com>" }, []string{"list_id"}},
		{func(c *Config) { c.Headers = map[string]string{"X-Priority": "1", "Importance": "höchst"} }, nil},
		{func(c *Config) { c.Headers = map[string]string{"X-A": "a\r\nBcc: b@example.com"} }, []string{"headers.X-A"}},
		{func(c *Config) { c.Headers = map[string]string{"X-A": "a\nb"} }, []string{"headers.X-A"}},
		{func(c *Config) { c.Headers = map[string]string{"X-A": " "} }, []string{"headers.X-A"}},
		{func(c *Config) { c.Headers = map[string]string{"X-A": strings.Repeat("x", 501)} }, []string{"headers.X-A"}},
		{func(c *Config) { c.Headers = map[string]string{"X-A": "1", "x-a": "2"} }, []string{"headers.x-a"}},
		{func(c *Config) { c.Headers = map[string]string{"X A": "1"} }, []string{"headers.X A"}},
		{func(c *Config) { c.Headers = map[string]string{"X-A: b\r\nBcc": "1"} }, []string{"headers.X-A: b\r\nBcc"}},
		{func(c *Config) { c.Headers = map[string]string{"": "1"} }, []string{"headers."}},
		{func(c *Config) { c.Headers = map[string]string{"bcc": "b@example.com"} }, []string{"headers.bcc"}},
		{func(c *Config) { c.Headers = map[string]string{"message-id": "<a@b>"} }, []string{"headers.message-id"}},
		{func(c *Config) { c.Headers = map[string]string{"Content-Type": "text/plain"} }, []string{"headers.Content-Type"}},
		{func(c *Config) { c.Headers = map[string]string{"List-ID": "x"} }, []string{"headers.List-ID"}},
		{func(c *Config) { c.Helo = "two words" }, []string{"helo"}},
		{func(c *Config) { c.ListUnsubscribe = "off@example.com" }, []string{"list_unsubscribe"}},
		{func(c *Config) { c.ListUnsubscribe = "https://" }, []string{"list_unsubscribe"}},
		{func(c *Config) { c.ListUnsubscribe = "https://example.com/> x" }, []string{"list_unsubscribe"}},
		{func(c *Config) { c.ListUnsubscribe = "mailto:a@example.com\r\nX: y" }, []string{"list_unsubscribe"}},
		{func(c *Config) { c.SubjectPrefix = "a\r\nX: y" }, []string{"subject_prefix"}},
		{func(c *Config) { c.SubjectPrefix = strings.Repeat("x", 61) }, []string{"subject_prefix"}},
		{func(c *Config) { c.Subject = templates.New("{{range 9}}{{end}}") }, []string{"subject"}},
		{func(c *Config) { c.Template, c.TemplateHTML = templates.New("{{"), templates.New("{{nope}}") }, []string{"template", "template_html"}},
	} {
		c := good
		tt.alter(&c)
		e, err := New(c)
		var fields []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				if f, ok := errors.AsType[*pipeline.FieldError](err); ok {
					fields = append(fields, f.Field)
				}
			}
		}
		if !slices.Equal(fields, tt.fields) || (err == nil) != (len(tt.fields) == 0) || (err == nil) != (e != nil) {
			t.Errorf("%+v: got %v, want errors of %v", c, err, tt.fields)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("a secret is in %v", err)
		}
	}
}

func TestSeveralRecipientsAreAList(t *testing.T) {
	_, err := New(Config{Host: "smtp.example.com", From: "a@example.com", To: registry.Texts{"Ann <a@example.com>, Bob <b@example.com>"}})
	if err == nil || !strings.Contains(err.Error(), "to: [ann@example.com, bob@example.com]") {
		t.Errorf("got %v, want what to do instead", err)
	}
}

func TestDefaultPorts(t *testing.T) {
	for way, want := range map[string]int{"": 587, StartTLS: 587, Implicit: 465, Plain: 25} {
		for given, want := range map[int]int{0: want, 2525: 2525} {
			e, err := New(Config{Host: "smtp.example.com", From: "a@example.com", To: registry.Texts{"b@example.com"}, TLS: way, Port: given})
			if err != nil || e.cfg.Port != want || way == "" && e.cfg.TLS != StartTLS {
				t.Errorf("%q, %d: %v, %v, want port %d", way, given, e, err, want)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	for _, way := range []string{StartTLS, Implicit} {
		t.Run(way, func(t *testing.T) {
			pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
				cert, pool := newTrustedCert(t)
				m := newMailServer(t, way == Implicit, cert)
				return pipelinetest.SinkFake{
					Sink: newEmail(t, withLogin(unencryptedConfig(m.host, m.port), way), pool),
					Got:  func() []pipelinetest.Arrived { return arrivedMessages(t, m) },
					Hold: m.holdMessage, Faults: serverFaults(m), Secrets: passwordForms, ForPeople: true,
				}
			})
		})
	}
}

// serverFaults are what goes wrong at a server.
func serverFaults(m *mailServer) map[string]pipelinetest.SinkFault {
	answer := func(at string, code int, enhanced smtp.EnhancedCode, class failure.Class) pipelinetest.SinkFault {
		return pipelinetest.SinkFault{Class: class, Arrange: func() {
			m.setFault(at, func(*smtp.Conn) error {
				return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: "no, " + strings.Join(passwordForms, " ")}
			})
		}}
	}
	drop := func(at string) pipelinetest.SinkFault {
		return pipelinetest.SinkFault{Ambiguous: at == ".", Arrange: func() {
			m.setFault(at, func(c *smtp.Conn) error { return c.Conn().Close() })
		}}
	}
	return map[string]pipelinetest.SinkFault{
		"wrong password":           answer("AUTH", 535, smtp.EnhancedCode{5, 7, 8}, failure.ClassRetry),
		"sender denied":            answer("MAIL", 550, smtp.EnhancedCode{5, 7, 1}, failure.ClassRetry),
		"greylisted":               answer("RCPT", 451, smtp.EnhancedCode{4, 7, 1}, failure.ClassRetry),
		"recipient unknown":        answer("RCPT", 550, smtp.EnhancedCode{5, 1, 1}, failure.ClassGone),
		"message refused":          answer(".", 554, smtp.EnhancedCode{5, 6, 0}, failure.ClassRefused),
		"disk full":                answer(".", 452, smtp.EnhancedCode{4, 3, 1}, failure.ClassRetry),
		"broken off before":        drop("MAIL"),
		"broken off in between":    drop("RCPT"),
		"broken off after the dot": drop("."),
	}
}

// holdMessage has the server take a message, and not answer.
func (m *mailServer) holdMessage() (began <-chan struct{}, release func()) {
	start, end := make(chan struct{}), make(chan struct{})
	m.setFault(".", func(*smtp.Conn) error {
		close(start)
		<-end
		return errors.New("held")
	})
	return start, func() { close(end) }
}

// arrivedMessages returns what a mail program shows of what came: the snippets of the HTML part.
func arrivedMessages(t *testing.T, m *mailServer) []pipelinetest.Arrived {
	t.Helper()
	var all []pipelinetest.Arrived
	for _, l := range m.messages() {
		r := parseMessage(t, l.body)
		id, _, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Message-ID"), "<"), "@")
		a := pipelinetest.Arrived{ID: id}
		page, err := html.Parse(strings.NewReader(r.parts["text/html"]))
		if err != nil {
			t.Fatal(err)
		}
		for n := range page.Descendants() {
			if n.Data == "blockquote" {
				a.Texts = append(a.Texts, textOf(n))
			}
		}
		all = append(all, a)
	}
	return all
}

// textOf is the text within n.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// BenchmarkDeliver compares the sink with a bare client of go-mail, which sends a message
// of the same size over a connection of its own to the same server. Both take turns, so that
// what else the machine does counts for both.
func BenchmarkDeliver(b *testing.B) {
	cert, pool := newTrustedCert(b)
	for _, way := range []string{StartTLS, Implicit} {
		b.Run(way, func(b *testing.B) {
			m := newMailServer(b, way == Implicit, cert)
			e := newEmail(b, withLogin(unencryptedConfig(m.host, m.port), way), pool)
			if err := e.Deliver(b.Context(), sample()); err != nil {
				b.Fatal(err)
			}
			parts := parseMessage(b, m.messages()[0].body).parts
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
func sendBare(m *mailServer, e *Email, way, text, html string) error {
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
