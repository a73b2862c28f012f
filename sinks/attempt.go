package sinks

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Attempt is one attempt to hand a receiver what waits for it.
type Attempt struct {
	Receiver pipeline.Receiver
	// Notifications are the oldest that wait, in their order. There is one, or several
	// where the sink takes batches.
	Notifications []pipeline.Notification
	// Number tells the attempts of one receiver apart.
	Number uint64

	// contexts has what belongs to each of the Notifications.
	contexts []attemptContext
	slow     bool
	ready    time.Time // when its sink could be used; zero where Config.Hand made it
	owned    bool      // by this process, when it was handed over
	recalled bool      // before it began
}

// attemptContext is what belongs to a notification: its document, what an earlier attempt
// noted of that, its subscription, and its trace.
type attemptContext struct{ document, note, subscription, trace string }

// has reports whether one of the Notifications is of a subscription.
func (a Attempt) has(subscription string) bool {
	return slices.ContainsFunc(a.contexts, func(c attemptContext) bool { return c.subscription == subscription })
}

// ending is how the delivery of one notification ended: the error of Sink.Deliver, and what
// the sink said beside it.
type ending struct {
	err  error
	said said
}

// result is the body of typeResult.
type result struct {
	Attempt uint64 `json:"attempt"`
	// Before has what was said of each notification that was delivered before the one that
	// the rest is about.
	Before []said `json:"before,omitempty"`
	// Ready is that of the Attempt.
	Ready time.Time `json:"ready,omitzero"`
	outcome
	said
}

// Result returns the message that tells Delivery.Process how a ended: errs are what
// Sink.Deliver returned for the first of its Notifications, at least one. Only the last may
// be an error; those behind it have not been tried. It goes to the lane of its key through a
// pipeline.Poster.
func (a Attempt) Result(errs ...error) flow.Message {
	ends := make([]ending, len(errs))
	for i, err := range errs {
		ends[i].err = err
	}
	return a.result(ends)
}

func (a Attempt) result(ends []ending) flow.Message {
	last := ends[len(ends)-1]
	r := result{Attempt: a.Number, Ready: a.ready, outcome: outcomeOf(last.err), said: last.said}
	for _, e := range ends[:len(ends)-1] {
		r.Before = append(r.Before, e.said)
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("sinks: result: " + err.Error()) // every field is encodable
	}
	first := a.Notifications[0]
	m := flow.Message{
		ID:    flow.DeriveID("delivery", first.ID, strconv.FormatUint(a.Number, 10)),
		Topic: flow.TopicNotifications, Key: a.Receiver.ID(), Type: typeResult,
		Subject: first.URL, Body: body,
	}
	if trace := a.contexts[len(ends)-1].trace; trace != "" {
		m.Header = map[string]string{flow.HeaderTrace: trace}
	}
	return m
}
