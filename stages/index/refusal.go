package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

func conflict(s pipeline.Subscription) *pipeline.Refusal {
	return &pipeline.Refusal{Code: pipeline.CodeConflict, Message: fmt.Sprintf("%s is already being watched for client %q", s.URL, s.Client)}
}

// refuse returns what is wrong with s, which is meant for page, or nil.
func refuse(page string, s pipeline.Subscription) *pipeline.Refusal {
	if err := s.Validate(); err != nil {
		return &pipeline.Refusal{Code: codeOf(err), Message: err.Error()}
	}
	if r := refuseURL(page, s.URL); r != nil {
		return r
	}
	for _, k := range s.Keywords {
		if err := text.ValidKeyword(k); err != nil {
			return &pipeline.Refusal{Code: pipeline.CodeKeywords, Message: "keywords: " + err.Error()}
		}
	}
	return nil
}

// awaited reports whether whoever sent m may wait for what is decided about it. Other
// commands are sent by this module alone, which does not.
func awaited(m flow.Message) bool {
	switch m.Type {
	case flow.TypeSubscribe, flow.TypeCancel, flow.TypeResume:
		return true
	}
	return false
}

// refused is the event that answers the command m, which was refused at the time at.
func refused(m flow.Message, r *pipeline.Refusal, at time.Time) pipeline.Health {
	h := pipeline.Health{
		ID: flow.HealthID(pipeline.HealthRefused, m.ID, 0), Event: pipeline.HealthRefused, Time: at,
		Command: m.ID, Code: r.Code, Reason: r.Message, Client: clientOf(m),
	}
	if page, err := pipeline.CanonicalURL(m.Key); err == nil {
		h.URL = page
	}
	return h
}

// clientOf returns whom the command m is for, as far as it can be read.
func clientOf(m flow.Message) string {
	var c struct {
		Client       string
		Subscription struct{ Client string }
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return ""
	}
	client := cmp.Or(c.Client, c.Subscription.Client)
	if m.Type == flow.TypeResume {
		return client // of all clients where it is empty
	}
	return pipeline.Subscription{Client: client}.WithDefaults().Client
}

// codeOf is the smallest code among the errors that Validate joined: the documented ones
// come before CodeFormat.
func codeOf(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := pipeline.CodeFormat
		for _, e := range joined.Unwrap() {
			code = min(code, codeOf(e))
		}
		return code
	}
	field, _ := errors.AsType[*pipeline.FieldError](err)
	if field == nil {
		return pipeline.CodeFormat
	}
	switch name, _, _ := strings.Cut(field.Field, "["); name {
	case "url":
		return pipeline.CodeURL
	case "keywords":
		return pipeline.CodeKeywords
	case "events":
		return pipeline.CodeEvents
	}
	return pipeline.CodeFormat
}
