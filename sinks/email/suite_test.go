package email

import (
	"errors"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestConformance(t *testing.T) {
	for _, way := range []string{StartTLS, Implicit} {
		t.Run(way, func(t *testing.T) {
			pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
				cert, pool := trusted(t)
				m := newMailbox(t, way == Implicit, cert)
				return pipelinetest.SinkFake{
					Sink: build(t, signedIn(plain(m.host, m.port), way), pool),
					Got:  func() []pipelinetest.Arrived { return arrived(t, m) },
					Hold: m.hold, Faults: faults(m), Secrets: secrets, ForPeople: true,
				}
			})
		})
	}
}

// faults are what goes wrong at a server.
func faults(m *mailbox) map[string]pipelinetest.SinkFault {
	answer := func(at string, code int, enhanced smtp.EnhancedCode, class pipeline.Class) pipelinetest.SinkFault {
		return pipelinetest.SinkFault{Class: class, Arrange: func() {
			m.arrange(at, func(*smtp.Conn) error {
				return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: "no, " + strings.Join(secrets, " ")}
			})
		}}
	}
	drop := func(at string) pipelinetest.SinkFault {
		return pipelinetest.SinkFault{Ambiguous: at == ".", Arrange: func() {
			m.arrange(at, func(c *smtp.Conn) error { return c.Conn().Close() })
		}}
	}
	return map[string]pipelinetest.SinkFault{
		"wrong password":           answer("AUTH", 535, smtp.EnhancedCode{5, 7, 8}, pipeline.ClassRetry),
		"sender denied":            answer("MAIL", 550, smtp.EnhancedCode{5, 7, 1}, pipeline.ClassRetry),
		"greylisted":               answer("RCPT", 451, smtp.EnhancedCode{4, 7, 1}, pipeline.ClassRetry),
		"recipient unknown":        answer("RCPT", 550, smtp.EnhancedCode{5, 1, 1}, pipeline.ClassGone),
		"message refused":          answer(".", 554, smtp.EnhancedCode{5, 6, 0}, pipeline.ClassRefused),
		"disk full":                answer(".", 452, smtp.EnhancedCode{4, 3, 1}, pipeline.ClassRetry),
		"broken off before":        drop("MAIL"),
		"broken off in between":    drop("RCPT"),
		"broken off after the dot": drop("."),
	}
}

// hold has the server take a message, and not answer.
func (m *mailbox) hold() (began <-chan struct{}, release func()) {
	start, end := make(chan struct{}), make(chan struct{})
	m.arrange(".", func(*smtp.Conn) error {
		close(start)
		<-end
		return errors.New("held")
	})
	return start, func() { close(end) }
}

// arrived returns what a mail program shows of what came: the snippets of the HTML part.
func arrived(t *testing.T, m *mailbox) []pipelinetest.Arrived {
	t.Helper()
	var all []pipelinetest.Arrived
	for _, l := range m.letters() {
		r := parse(t, l.body)
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
