package email

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

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
