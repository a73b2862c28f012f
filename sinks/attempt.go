package sinks

import (
	"encoding/json"
	"strconv"

	"github.com/vokter/vokter/pipeline"
)

// Attempt is one attempt to hand a notification to its receiver.
type Attempt struct {
	Receiver     pipeline.Receiver
	Notification pipeline.Notification
	// Number tells the attempts of one receiver apart.
	Number uint64

	document string
	// note is what an earlier attempt noted; said what this one said.
	note  string
	said  said
	slow  bool
	owned bool // by this process, when it was handed over
	trace string
}

// result is the body of typeResult.
type result struct {
	Attempt uint64 `json:"attempt"`
	Outcome
	said
}

// Result returns the message that tells Delivery.Process how a ended; err is what
// Sink.Deliver returned. It goes to the lane of its key through a pipeline.Poster.
func (a Attempt) Result(err error) pipeline.Message {
	body, merr := json.Marshal(result{Attempt: a.Number, Outcome: OutcomeOf(err), said: a.said})
	if merr != nil {
		panic("sinks: result: " + merr.Error()) // every field is encodable
	}
	m := pipeline.Message{
		ID:    pipeline.DeriveID("delivery", a.Notification.ID, strconv.FormatUint(a.Number, 10)),
		Topic: pipeline.TopicNotifications, Key: a.Receiver.ID(), Type: typeResult,
		Subject: a.Notification.URL, Body: body,
	}
	if a.trace != "" {
		m.Header = map[string]string{pipeline.HeaderTrace: a.trace}
	}
	return m
}
