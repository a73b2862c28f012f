package email

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
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

// compose returns n as a message. Its Message-ID is the same in every attempt. All messages of one
// day about a document refer to the same message, which need not exist, so that mail programs show
// them together.
func (e *Email) compose(ctx context.Context, n pipeline.Notification) (*gomail.Msg, error) {
	l := render.MessageOf(n, budget)
	m := gomail.NewMsg()
	m.FromMailAddress(e.from)
	switch n.Severity {
	case pipeline.SeverityCritical:
		m.SetImportance(gomail.ImportanceHigh)
	case pipeline.SeverityInfo:
		m.SetImportance(gomail.ImportanceLow)
	}
	m.ToMailAddress(e.recipients...)
	m.Subject(encodeSubject(e.subject(ctx, n, l)))
	m.SetDateWithValue(e.now())
	m.SetMessageIDWithValue(n.ID + "@" + e.domain())
	if root := e.threadID(pipeline.AttemptFrom(ctx).Document(), n); root != "" {
		m.SetGenHeader(gomail.HeaderInReplyTo, root)
		m.SetGenHeader(gomail.HeaderReferences, root)
	}
	m.SetBulk()
	m.SetGenHeader(headerAutoSubmitted, "auto-generated")
	m.SetUserAgent(outbound.UserAgent)
	if err := e.setHeaders(m); err != nil {
		return nil, err
	}
	return m, e.addParts(ctx, m, n, l)
}

// addParts adds the text part and the HTML part, best one last.
func (e *Email) addParts(ctx context.Context, m *gomail.Msg, n pipeline.Notification, l render.Message) error {
	text, ownText := e.textTemplate.Render(ctx, n)
	html, ownHTML := e.htmlTemplate.RenderFor(ctx, n, render.HTML)
	if !ownText && !ownHTML {
		var err error
		if html, err = renderHTML(l, n); err != nil {
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
	s, own := e.subjectTemplate.Render(ctx, n)
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

// maxFirstWord is how long the first encoded word of a subject may be for go-mail to write it into the first line of its
// field: a line has at most 76 characters (RFC 2047, section 2), of which go-mail keeps four.
const maxFirstWord = 76 - len("Subject: ") - 4

// encodeSubject returns s as encoded words (RFC 2047) if it needs any. The first one is short: go-mail begins a new line
// before a longer one, and mail programs then show a blank in front of the subject.
func encodeSubject(s string) string {
	encode := func(s string) string { return mime.QEncoding.Encode("UTF-8", s) }
	if encode(s) == s || len(encode(s)) <= maxFirstWord {
		return s
	}
	best := s
	for i := range s {
		first := encode(s[:i])
		if len(first) > maxFirstWord {
			break
		}
		// Blanks between encoded words do not count, others do.
		for _, rest := range []string{s[i:], strings.TrimPrefix(s[i:], " ")} {
			words := first + " " + encode(rest)
			if read, err := new(mime.WordDecoder).DecodeHeader(words); err == nil && read == s && i > 0 {
				best = words
			}
		}
	}
	return best
}

// domain returns the domain of the sender's address.
func (e *Email) domain() string {
	return e.from.Address[strings.LastIndexByte(e.from.Address, '@')+1:]
}

// threadID returns the ID of the message that n replies to: one for each day (UTC) and document,
// or page if the document is not known. It is empty for a notification about neither.
func (e *Email) threadID(document string, n pipeline.Notification) string {
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

//go:embed page.tmpl
var pageTemplateSource string

var pageTemplate = template.Must(template.New("page").Parse(pageTemplateSource))

// renderHTML renders the HTML part. All text of a page goes through html/template, and the text of the
// only link is its URL.
func renderHTML(l render.Message, n pipeline.Notification) (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, struct {
		render.Message
		Shown, Footer string
	}{l, render.Page(l.URL), footer(n)})
	return b.String(), err
}

// maxHeaderValue bounds the value of a header of the configuration, in runes.
const maxHeaderValue = 500

// reservedHeaders maps the headers that the sink or mail servers set to the hint in the error.
var reservedHeaders = map[string]string{
	"From": "write from", "To": "write to", "Cc": "write all recipients in to", "Bcc": "write all recipients in to",
	"Reply-To": "write reply_to", "Subject": "write subject or subject_prefix", "List-Id": "write list_id",
	"List-Unsubscribe": "write list_unsubscribe", "List-Unsubscribe-Post": "write list_unsubscribe",
	"Date": "it is the time of the attempt", "Message-Id": "it names the notification",
	"In-Reply-To": "it makes threads", "References": "it makes threads",
	"Auto-Submitted": "every message has it", "Precedence": "every message has it", "X-Auto-Response-Suppress": "every message has it",
	"User-Agent": "it names this program", "X-Mailer": "it names this program", "Mime-Version": "it belongs to the parts of the message",
	"Return-Path": "mail servers set it", "Received": "mail servers set it", "Dkim-Signature": "mail servers set it",
}

// checkHeader says why a header cannot be in every message.
func checkHeader(name, value string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !isHeaderName(name):
		return errors.New(`this is not the name of a header; use letters, digits and "-"`)
	case reservedHeaders[canonical] != "":
		return fmt.Errorf("this header cannot be given: %s", reservedHeaders[canonical])
	case strings.HasPrefix(canonical, "Content-"), strings.HasPrefix(canonical, "Resent-"):
		return errors.New("this header cannot be given: those that begin with Content- or Resent- belong to mail programs")
	case strings.TrimSpace(value) == "":
		return errors.New("it is empty; give it a value, or leave the header out")
	case strings.ContainsFunc(value, unicode.IsControl):
		return errors.New("its value has a line break or another control character, which no header can have")
	case render.Runes(value) > maxHeaderValue:
		return fmt.Errorf("its value is longer than %d characters", maxHeaderValue)
	}
	return nil
}

// isHeaderName reports whether name can be that of a header (RFC 5322, 3.6.8).
func isHeaderName(name string) bool {
	return name != "" && len(name) <= 76 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' })
}

// setHeaders sets the headers of the configuration.
func (e *Email) setHeaders(m *gomail.Msg) error {
	m.SetGenHeaderPreformatted("List-Id", e.listID)
	if e.replyTo != nil {
		m.ReplyToMailAddress(e.replyTo)
	}
	for name, value := range e.cfg.Headers {
		m.SetGenHeader(gomail.Header(name), value)
	}
	return e.setUnsubscribe(m)
}

// parseListID returns the value of List-Id (RFC 2919) for raw: an identifier, or a text with one
// in angle brackets. Without raw it is one below domain, that of the sender.
func parseListID(raw, domain string) (string, error) {
	if raw == "" {
		if !hostNamePattern.MatchString(domain) { // an address in brackets
			domain = "localhost"
		}
		return "<vokter." + domain + ">", nil
	}
	text, id := "", raw
	if i := strings.LastIndexByte(raw, '<'); i >= 0 && strings.HasSuffix(raw, ">") {
		text, id = strings.TrimSpace(raw[:i]), raw[i+1:len(raw)-1]
	}
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`<>"\()`, r) })
	if !hostNamePattern.MatchString(id) || !strings.Contains(id, ".") || !plain || len(raw) > 200 {
		return "", errors.New("this is not the identifier of a list; write one such as alerts.example.com, or \"Alerts <alerts.example.com>\"")
	}
	if text != "" {
		return `"` + text + `" <` + id + ">", nil
	}
	return "<" + id + ">", nil
}

// maxRecipients is how many recipients every server has to accept in one message (RFC 5321,
// 4.5.3.1.8). The note for so many fits pipeline.MaxNote.
const maxRecipients = 100

// hashLength is how much of the hash of an address stands in a note.
const hashLength = 8

// missingRecipients returns the recipients that do not have the notification id yet. A server may have
// taken it for some of them in an earlier attempt, which noted that.
func (e *Email) missingRecipients(a pipeline.Attempt, id string) []*mail.Address {
	noted, hashes, _ := strings.Cut(a.Note(), " ")
	if noted != id {
		return e.recipients
	}
	have := make(map[string]bool)
	for len(hashes) >= hashLength {
		have[hashes[:hashLength]], hashes = true, hashes[hashLength:]
	}
	return slices.DeleteFunc(slices.Clone(e.recipients), func(r *mail.Address) bool { return have[addressHash(r)] })
}

// noteRecipients records for the next attempt that all recipients except missing have the notification id.
func (e *Email) noteRecipients(a pipeline.Attempt, id string, missing []refusedRecipient) {
	var b strings.Builder
	b.WriteString(id + " ")
	for _, r := range e.recipients {
		if !slices.ContainsFunc(missing, func(m refusedRecipient) bool { return m.recipient == r }) {
			b.WriteString(addressHash(r))
		}
	}
	a.SetNote(b.String())
}

// addressHash names a recipient in a note.
func addressHash(r *mail.Address) string {
	sum := sha256.Sum256([]byte(r.Address))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:hashLength]
}

// refusedRecipient is a recipient that the server refused before the message was sent.
type refusedRecipient struct {
	recipient  *mail.Address
	answer     *textproto.Error
	answerLine string // the answer in one line
}

// hasWrongAddress reports whether the server said that there is no such address.
func (r refusedRecipient) hasWrongAddress() bool {
	return r.answer.Code >= 500 && wrongAddressCode.MatchString(r.answer.Msg)
}

// classifyRefusals classifies the refusals after the server has accepted the message for the other
// recipients, if there are any. A wrong address does not hold up the other recipients: a health
// event names it. For other refusals it notes the recipients that have the message, so that
// the next attempt does not send it to them again.
func (e *Email) classifyRefusals(a pipeline.Attempt, id string, list []refusedRecipient) error {
	later := slices.DeleteFunc(slices.Clone(list), refusedRecipient.hasWrongAddress)
	switch {
	case len(later) > 0:
		if len(e.recipients) > 1 {
			e.noteRecipients(a, id, later)
		}
		return fmt.Errorf("%s", e.describeRefusals(later))
	case len(list) == len(e.recipients):
		return failure.Gone(errors.New(e.describeRefusals(list)))
	case len(list) > 0:
		a.Degraded(e.describeRefusals(list) + "; remove this recipient from the sink, or correct the address")
	}
	return nil
}

// describeRefusals returns the server's answer. With several recipients it also names the refused one.
func (e *Email) describeRefusals(list []refusedRecipient) string {
	var parts []string
	for _, r := range list {
		s := "the server answered " + r.answerLine
		if len(e.recipients) > 1 {
			s += " to the recipient " + r.recipient.Address
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}
