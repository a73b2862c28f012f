package email

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/vokter/vokter/internal/render"
)

// maxHeader bounds the value of a header of the configuration, in runes.
const maxHeader = 500

// ours are the headers that a message has anyway, or that say who gets it, with what to write
// instead.
var ours = map[string]string{
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
	case !fieldName(name):
		return errors.New(`this is not the name of a header; use letters, digits and "-"`)
	case ours[canonical] != "":
		return fmt.Errorf("this header cannot be given: %s", ours[canonical])
	case strings.HasPrefix(canonical, "Content-"), strings.HasPrefix(canonical, "Resent-"):
		return errors.New("this header cannot be given: those that begin with Content- or Resent- belong to mail programs")
	case strings.TrimSpace(value) == "":
		return errors.New("it is empty; give it a value, or leave the header out")
	case strings.ContainsFunc(value, unicode.IsControl):
		return errors.New("its value has a line break or another control character, which no header can have")
	case render.Runes(value) > maxHeader:
		return fmt.Errorf("its value is longer than %d characters", maxHeader)
	}
	return nil
}

// fieldName reports whether name can be that of a header (RFC 5322, 3.6.8).
func fieldName(name string) bool {
	return name != "" && len(name) <= 76 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' })
}

// headerMistakes calls bad for each of headers that cannot be given.
func headerMistakes(headers map[string]string, bad func(field, format string, args ...any)) {
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if err := checkHeader(name, headers[name]); err != nil {
			bad("headers."+name, "%v", err)
		} else if seen[canonical] {
			bad("headers."+name, "the header is given twice, in two spellings")
		}
		seen[canonical] = true
	}
}

// setHeaders sets what the configuration says of headers.
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
		if !hostName.MatchString(domain) { // an address in brackets
			domain = "localhost"
		}
		return "<vokter." + domain + ">", nil
	}
	text, id := "", raw
	if i := strings.LastIndexByte(raw, '<'); i >= 0 && strings.HasSuffix(raw, ">") {
		text, id = strings.TrimSpace(raw[:i]), raw[i+1:len(raw)-1]
	}
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`<>"\()`, r) })
	if !hostName.MatchString(id) || !strings.Contains(id, ".") || !plain || len(raw) > 200 {
		return "", errors.New("this is not the identifier of a list; write one such as alerts.example.com, or \"Alerts <alerts.example.com>\"")
	}
	if text != "" {
		return `"` + text + `" <` + id + ">", nil
	}
	return "<" + id + ">", nil
}
