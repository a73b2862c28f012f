package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Codes of refused commands. Programs in other languages read them (Code in the schema of
// health events), so that each keeps its number; there is no 2.
const (
	CodeURL      = 1 // the document's URL is invalid
	CodeKeywords = 3 // no keyword, or one that is invalid
	CodeEvents   = 4 // no event that exists
	CodeConflict = 5 // the pair of document and client has a subscription
	CodeFormat   = 6 // anything else is wrong with the command
	CodeNotFound = 7 // there is nothing to cancel or resume
)

// Refusal is why index did not do what a command asked for.
type Refusal struct {
	// Code is one of the Code constants.
	Code int
	// Message says it in words for the user.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func conflict(s pipeline.Subscription) *Refusal {
	return &Refusal{CodeConflict, fmt.Sprintf("%s is already being watched for client %q", s.URL, s.Client)}
}

// refuse returns what is wrong with s, which is meant for page, or nil.
func refuse(page string, s pipeline.Subscription) *Refusal {
	if err := s.Validate(); err != nil {
		return &Refusal{codeOf(err), err.Error()}
	}
	if r := refuseURL(page, s.URL); r != nil {
		return r
	}
	for _, k := range s.Keywords {
		if err := text.ValidKeyword(k); err != nil {
			return &Refusal{CodeKeywords, "keywords: " + err.Error()}
		}
	}
	return nil
}

// awaited reports whether whoever sent m may wait for what is decided about it. Other
// commands are sent by this module alone, which does not.
func awaited(m pipeline.Message) bool {
	switch m.Type {
	case pipeline.TypeSubscribe, pipeline.TypeCancel, pipeline.TypeResume:
		return true
	}
	return false
}

// refused is the event that answers the command m, which was refused at the time at.
func refused(m pipeline.Message, r *Refusal, at time.Time) pipeline.Health {
	h := pipeline.Health{
		ID: pipeline.HealthID(pipeline.HealthRefused, m.ID, 0), Event: pipeline.HealthRefused, Time: at,
		Command: m.ID, Code: r.Code, Reason: r.Message, Client: clientOf(m),
	}
	if page, err := pipeline.CanonicalURL(m.Key); err == nil {
		h.URL = page
	}
	return h
}

// clientOf returns whom the command m is for, as far as it can be read.
func clientOf(m pipeline.Message) string {
	var c struct {
		Client       string
		Subscription struct{ Client string }
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return ""
	}
	client := cmp.Or(c.Client, c.Subscription.Client)
	if m.Type == pipeline.TypeResume {
		return client // of all clients where it is empty
	}
	return pipeline.Subscription{Client: client}.WithDefaults().Client
}

// codeOf is the smallest code among the errors that Validate joined: the documented ones
// come before CodeFormat.
func codeOf(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := CodeFormat
		for _, e := range joined.Unwrap() {
			code = min(code, codeOf(e))
		}
		return code
	}
	field, _ := errors.AsType[*pipeline.FieldError](err)
	if field == nil {
		return CodeFormat
	}
	switch name, _, _ := strings.Cut(field.Field, "["); name {
	case "url":
		return CodeURL
	case "keywords":
		return CodeKeywords
	case "events":
		return CodeEvents
	}
	return CodeFormat
}
