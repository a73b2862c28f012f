package email

import (
	"context"
	"fmt"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// budget keeps a message below the 100 KB at which mail programs begin to cut.
var budget = render.Budget{Total: 20_000, Lines: 100, Line: 480, LineCost: 100}

// Bounds within a subject, in runes: mail programs show about 70.
const (
	maxHeadline = 100
	maxTitle    = 80
)

const headerAutoSubmitted gomail.Header = "Auto-Submitted" // RFC 3834: no machine answers it

// compose returns n as a message. Its Message-ID is always the same; so are the references,
// to a message that need not exist, of all that one day brings of a document: mail programs
// show them together.
func (e *Email) compose(ctx context.Context, n pipeline.Notification) (*gomail.Msg, error) {
	l := render.MessageOf(n, budget)
	m := gomail.NewMsg()
	m.FromMailAddress(e.from)
	m.ToMailAddress(e.to...)
	m.Subject(e.subject(ctx, n, l))
	m.SetDateWithValue(e.now())
	m.SetMessageIDWithValue(n.ID + "@" + e.domain())
	if root := e.thread(pipeline.AttemptFrom(ctx).Document(), n); root != "" {
		m.SetGenHeader(gomail.HeaderInReplyTo, root)
		m.SetGenHeader(gomail.HeaderReferences, root)
	}
	m.SetBulk()
	m.SetGenHeader(headerAutoSubmitted, "auto-generated")
	m.SetUserAgent(outbound.UserAgent)
	if err := e.setHeaders(m); err != nil {
		return nil, err
	}
	return m, e.setParts(ctx, m, n, l)
}

// setParts adds the text part and the HTML part, best one last.
func (e *Email) setParts(ctx context.Context, m *gomail.Msg, n pipeline.Notification, l render.Message) error {
	text, ownText := e.text.Render(ctx, n)
	html, ownHTML := e.html.RenderFor(ctx, n, render.HTML)
	if !ownText && !ownHTML {
		var err error
		if html, err = page(l, n); err != nil {
			return fmt.Errorf("the HTML part: %w", err)
		}
		text = l.Plain() + "\n\n" + footer(n)
	}
	if text != "" {
		m.AddAlternativeString(gomail.TypeTextPlain, text+"\n")
	}
	if html != "" {
		m.AddAlternativeString(gomail.TypeTextHTML, html)
	}
	return nil
}

// footer names n, as the verb explain knows it, and its time.
func footer(n pipeline.Notification) string {
	return "Notification " + n.ID + ", " + n.Time.UTC().Format("2 Jan 2006 15:04:05 MST")
}

// subject says what happened and where, or what the operator's template does. It cannot be
// an encoded word (RFC 2047) that a page has put together: those begin with "=?".
func (e *Email) subject(ctx context.Context, n pipeline.Notification, l render.Message) string {
	s, own := e.heading.Render(ctx, n)
	if own {
		s = render.Short(render.Clean(s), maxHeadline+maxTitle)
	} else {
		s = render.Short(l.Headline, maxHeadline)
		if l.Title != "" {
			s += " - " + render.Short(l.Title, maxTitle)
		}
	}
	if e.cfg.SubjectPrefix != "" {
		s = e.cfg.SubjectPrefix + " " + s
	}
	return strings.ReplaceAll(s, "=?", "= ?")
}

// domain is that of the sender.
func (e *Email) domain() string {
	return e.from.Address[strings.LastIndexByte(e.from.Address, '@')+1:]
}

// thread names the message that n answers, so to speak: one for each document, or page
// where no document is known, and day (UTC). What is about neither stands alone.
func (e *Email) thread(document string, n pipeline.Notification) string {
	if document == "" {
		document = n.URL
	}
	if document == "" {
		return ""
	}
	day := n.Time.UTC().Format(time.DateOnly)
	return "<" + flow.DeriveID("thread", document, day) + "@" + e.domain() + ">"
}

// setUnsubscribe says where to unsubscribe, if anywhere.
func (e *Email) setUnsubscribe(m *gomail.Msg) error {
	switch {
	case e.unsubscribe == nil:
		return nil
	case e.unsubscribe.Scheme == "https":
		return m.SetListUnsubscribeOneClick(e.unsubscribe.String())
	}
	m.SetListUnsubscribe(e.unsubscribe.String())
	return nil
}
