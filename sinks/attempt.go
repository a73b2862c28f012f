package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
)

// Attempt is one attempt to deliver the oldest notifications of a receiver.
type Attempt struct {
	Receiver pipeline.Receiver
	// Notifications are the oldest pending ones, in order: one, or several if the sink takes
	// batches.
	Notifications []pipeline.Notification
	// Number counts the attempts of the receiver.
	Number uint64

	// contexts are those of the Notifications, one each.
	contexts []attemptContext
}

// attemptContext belongs to one notification of an attempt, which is pending under the number seq.
// note is what an earlier attempt noted about its document.
type attemptContext struct {
	seq                                 uint64
	document, note, subscription, trace string
}

// addressed returns the notification that is pending under the number seq. Ok is false if a does not
// have it.
func (a *Attempt) addressed(seq uint64) (n flow.Addressed, ok bool) {
	for i, c := range a.contexts {
		if c.seq == seq {
			return flow.Addressed{Receiver: a.Receiver, Document: c.document, Subscription: c.subscription, Notification: a.Notifications[i]}, true
		}
	}
	return flow.Addressed{}, false
}

// has reports whether one of the Notifications is of a subscription.
func (a Attempt) has(subscription string) bool {
	return slices.ContainsFunc(a.contexts, func(c attemptContext) bool { return c.subscription == subscription })
}

// ending is how the delivery of one notification ended: the error of Sink.Deliver, and what
// the sink set through its pipeline.Attempt.
type ending struct {
	err  error
	said said
}

// result is the body of typeResult.
type result struct {
	Attempt uint64 `json:"attempt"`
	// Before are the notifications that were delivered before the last one tried. The other
	// fields are about that one.
	Before []said `json:"before,omitempty"`
	// Ready is when the rate of the sink let the attempt begin, zero where Config.Hand made it.
	Ready time.Time `json:"ready,omitzero"`
	outcome
	said
}

// Result returns the message that reports to Delivery.Process how a ended. errs are what
// Sink.Deliver returned for the first len(errs) Notifications, at least one; the others were
// not tried. Only the last may be an error. A flow.Poster brings the message to its lane.
func (a Attempt) Result(errs ...error) flow.Message {
	ends := make([]ending, len(errs))
	for i, err := range errs {
		ends[i].err = err
	}
	return a.result(ends, time.Time{})
}

func (a Attempt) result(ends []ending, ready time.Time) flow.Message {
	last := ends[len(ends)-1]
	r := result{Attempt: a.Number, Ready: ready, outcome: outcomeOf(last.err), said: last.said}
	for _, e := range ends[:len(ends)-1] {
		r.Before = append(r.Before, e.said)
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("sinks: result: " + err.Error()) // every field is encodable
	}
	first := a.Notifications[0]
	return flow.Message{
		ID:    flow.DeriveID("delivery", first.ID, strconv.FormatUint(a.Number, 10)),
		Topic: flow.TopicNotifications, Key: a.Receiver.Sink, Type: typeResult,
		Subject: first.URL, Trace: a.contexts[len(ends)-1].trace, Body: body,
	}
}

// outcome says how an attempt ended.
type outcome struct {
	Delivered bool `json:"delivered,omitempty"`
	// Class, After and Reason describe a failure: the class of its error, the least delay
	// that the receiver asked for, and the error in one line.
	Class  failure.Class `json:"class,omitempty"`
	After  time.Duration `json:"after,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// Tell says that the failure is reported at once, not only when it repeats.
	Tell bool `json:"tell,omitempty"`
}

// mayHaveArrived follows the reason of an ambiguous failure.
const mayHaveArrived = " (it may have arrived)"

// outcomeOf returns the outcome that err, the result of Sink.Deliver, stands for.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{Delivered: true}
	}
	class, after := failure.ClassOf(err)
	reason := oneLine(err.Error())
	if failure.IsAmbiguous(err) {
		reason += mayHaveArrived
	}
	return outcome{Class: class, After: after, Reason: reason, Tell: failure.TellsAtOnce(err)}
}

// maxReason is the length to which errors are cut, in bytes.
const maxReason = 400

// oneLine makes s one line of valid UTF-8 without control characters, cut after maxReason
// bytes.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			space = b.Len() > 0
			continue
		}
		if b.Len() >= maxReason {
			return b.String() + "..."
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// said is what a sink set through its pipeline.Attempt. Note is nil if it set none. Degraded
// says why the notification was not delivered as configured.
type said struct {
	Note     *string `json:"note,omitempty"`
	Degraded string  `json:"degraded,omitempty"`
}

// handle is the pipeline.Attempt of one notification in an attempt.
type handle struct {
	document string

	mu   sync.Mutex
	note string
	said said
}

var _ pipeline.Attempt = (*handle)(nil)

func (h *handle) Document() string { return h.document }

func (h *handle) Note() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.note
}

func (h *handle) SetNote(text string) {
	if len(text) > pipeline.MaxNote {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note, h.said.Note = text, &text
}

func (h *handle) Degraded(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Degraded = oneLine(reason)
}

// end returns what the sink has set.
func (h *handle) end() said {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

// batchFor is for how long an attempt goes on to the next notification. It limits how many are
// delivered twice after a crash.
const batchFor = 100 * time.Millisecond

// batch delivers the Notifications of a to s until one fails, batchFor is over, or ctx is done.
// It returns the endings of those that it tried: at least one, and only the last with an
// error. If s has replaced a sink with larger batches, the next attempt has the rest.
func (p *pool) batch(ctx context.Context, s pipeline.Sink, a Attempt) []ending {
	limit, atOnce := registry.BatchOf(s)
	began := time.Now()
	var ends []ending
	for len(ends) < min(limit, len(a.Notifications)) {
		if len(ends) > 0 && (ctx.Err() != nil || time.Since(began) >= batchFor) {
			break
		}
		for _, e := range p.concurrently(ctx, s, a, len(ends), a.distinct(len(ends), min(atOnce, limit-len(ends)))) {
			if ends = append(ends, e); e.err != nil {
				return ends
			}
			a.shareNote(len(ends), e.said.Note)
		}
	}
	return ends
}

// concurrently delivers n of the Notifications of a to s at the same time, beginning with
// number from.
func (p *pool) concurrently(ctx context.Context, s pipeline.Sink, a Attempt, from, n int) []ending {
	ends := make([]ending, n)
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { ends[i] = p.deliver(ctx, s, a, from+i) })
	}
	ends[n-1] = p.deliver(ctx, s, a, from+n-1) // often the only one
	wg.Wait()
	return ends
}

// distinct returns how many Notifications in a row, beginning with number from, are of
// different documents, at most limit.
func (a Attempt) distinct(from, limit int) int {
	if limit == 1 {
		return 1
	}
	seen := make(map[string]bool)
	for _, c := range a.contexts[from:] {
		if seen[c.document] || len(seen) == limit {
			break
		}
		seen[c.document] = true
	}
	return len(seen)
}

// shareNote passes the note of the notification before number from on to the later ones of
// the same document.
func (a Attempt) shareNote(from int, note *string) {
	if note == nil {
		return
	}
	document := a.contexts[from-1].document
	for i := from; i < len(a.contexts); i++ {
		if a.contexts[i].document == document {
			a.contexts[i].note = *note
		}
	}
}

// deliver calls s for notification number i of a. A panic counts as an error.
func (p *pool) deliver(ctx context.Context, s pipeline.Sink, a Attempt, i int) (e ending) {
	if s == nil {
		return ending{err: fmt.Errorf("no sink named %q is configured", a.Receiver.Sink)}
	}
	var attributes []attribute.KeyValue
	if p.cfg.Tracer.On() {
		attributes = []attribute.KeyValue{
			attribute.String("vokter.sink", pageurl.Redacted(a.Receiver.Sink)), attribute.String("vokter.page", pageurl.Redacted(a.Notifications[i].URL)),
			attribute.String("vokter.notification", a.Notifications[i].ID),
		}
	}
	ctx, _, end := p.cfg.Tracer.Start(ctx, "deliver", a.contexts[i].trace, attributes...)
	h := &handle{document: a.contexts[i].document, note: a.contexts[i].note}
	defer func() {
		if r := recover(); r != nil {
			p.cfg.Logger.Error("a sink panicked", "sink", a.Receiver.Sink, "panic", oneLine(fmt.Sprint(r)), "stack", string(debug.Stack()))
			e.err = fmt.Errorf("the sink panicked: %v", r)
		}
		e.said = h.end()
		end(e.err)
	}()
	n := a.Notifications[i]
	if p.cfg.Link != nil {
		n.Link = p.cfg.Link(h.document, n)
	}
	e.err = s.Deliver(pipeline.WithAttempt(ctx, h), n)
	return e
}
