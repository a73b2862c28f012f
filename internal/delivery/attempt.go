package delivery

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

// addressed returns the notification that is pending under the number seq, with its receiver. ok is
// false if a does not have it.
func (a *Attempt) addressed(seq uint64) (n flow.Addressed, ok bool) {
	for i, c := range a.contexts {
		if c.seq == seq {
			return flow.Addressed{Receiver: a.Receiver, Document: c.document, Subscription: c.subscription, Notification: a.Notifications[i]}, true
		}
	}
	return flow.Addressed{}, false
}

// hasSubscription reports whether one of the Notifications is of a subscription.
func (a Attempt) hasSubscription(subscription string) bool {
	return slices.ContainsFunc(a.contexts, func(c attemptContext) bool { return c.subscription == subscription })
}

// deliveryResult is how the delivery of one notification ended: the error of Sink.Deliver, and what
// the sink set through its pipeline.Attempt.
type deliveryResult struct {
	err    error
	report sinkReport
}

// resultBody is the body of typeResult.
type resultBody struct {
	Attempt uint64 `json:"attempt"`
	// DeliveredBefore are the notifications that were delivered before the last one tried. The other
	// fields are about that one.
	DeliveredBefore []sinkReport `json:"before,omitempty"`
	// Ready is when the rate of the sink let the attempt begin, zero where Config.Hand made it.
	Ready time.Time `json:"ready,omitzero"`
	attemptOutcome
	sinkReport
}

// Result returns the message that reports to Delivery.Process how a ended. errs are what
// Sink.Deliver returned for the first len(errs) Notifications, at least one; the others were
// not tried. Only the last may be an error. A flow.Poster brings the message to its lane.
func (a Attempt) Result(errs ...error) flow.Message {
	ends := make([]deliveryResult, len(errs))
	for i, err := range errs {
		ends[i].err = err
	}
	return a.newResult(ends, time.Time{})
}

func (a Attempt) newResult(ends []deliveryResult, ready time.Time) flow.Message {
	last := ends[len(ends)-1]
	r := resultBody{Attempt: a.Number, Ready: ready, attemptOutcome: outcomeOf(last.err), sinkReport: last.report}
	for _, e := range ends[:len(ends)-1] {
		r.DeliveredBefore = append(r.DeliveredBefore, e.report)
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("delivery: result: " + err.Error()) // every field is encodable
	}
	first := a.Notifications[0]
	return flow.Message{
		ID:    flow.DeriveID("delivery", first.ID, strconv.FormatUint(a.Number, 10)),
		Topic: flow.TopicNotifications, Key: a.Receiver.Sink, Type: typeResult,
		Subject: first.URL, Trace: a.contexts[len(ends)-1].trace, Body: body,
	}
}

// attemptOutcome says how an attempt ended.
type attemptOutcome struct {
	Delivered bool `json:"delivered,omitempty"`
	// Class, After and Reason describe a failure: the class of its error, the least delay
	// that the receiver asked for, and the error in one line.
	Class  failure.Class `json:"class,omitempty"`
	After  time.Duration `json:"after,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// ReportNow says that the failure is reported at once, not only when it repeats.
	ReportNow bool `json:"tell,omitempty"`
}

// ambiguousSuffix follows the reason of an ambiguous failure.
const ambiguousSuffix = " (it may have arrived)"

// outcomeOf returns the outcome that err, the result of Sink.Deliver, stands for.
func outcomeOf(err error) attemptOutcome {
	if err == nil {
		return attemptOutcome{Delivered: true}
	}
	class, after := failure.ClassOf(err)
	reason := oneLine(err.Error())
	if failure.IsAmbiguous(err) {
		reason += ambiguousSuffix
	}
	return attemptOutcome{Class: class, After: after, Reason: reason, ReportNow: failure.TellsAtOnce(err)}
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

// sinkReport is what a sink set through its pipeline.Attempt. Note is nil if it set none. Degraded
// says why the notification was not delivered as configured.
type sinkReport struct {
	Note     *string `json:"note,omitempty"`
	Degraded string  `json:"degraded,omitempty"`
}

// attemptHandle is the pipeline.Attempt of one notification in an attempt.
type attemptHandle struct {
	document string

	mu       sync.Mutex
	note     string
	reported sinkReport
}

var _ pipeline.Attempt = (*attemptHandle)(nil)

func (h *attemptHandle) Document() string { return h.document }

func (h *attemptHandle) Note() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.note
}

func (h *attemptHandle) SetNote(text string) {
	if len(text) > pipeline.MaxNote {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note, h.reported.Note = text, &text
}

func (h *attemptHandle) Degraded(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reported.Degraded = oneLine(reason)
}

// report returns what the sink has set.
func (h *attemptHandle) report() sinkReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported
}

// maxBatchTime is for how long an attempt goes on to the next notification. It limits how many are
// delivered twice after a crash.
const maxBatchTime = 100 * time.Millisecond

// deliverBatch delivers the Notifications of a to s until one fails, maxBatchTime is over, or ctx is done.
// It returns the results of those that it tried: at least one, and only the last with an
// error. If s has replaced a sink with larger batches, the next attempt has the rest.
func (p *pool) deliverBatch(ctx context.Context, s pipeline.Sink, a Attempt) []deliveryResult {
	limit, atOnce := registry.BatchOf(s)
	began := time.Now()
	var ends []deliveryResult
	for len(ends) < min(limit, len(a.Notifications)) {
		if len(ends) > 0 && (ctx.Err() != nil || time.Since(began) >= maxBatchTime) {
			break
		}
		for _, e := range p.deliverConcurrently(ctx, s, a, len(ends), a.countDistinctDocuments(len(ends), min(atOnce, limit-len(ends)))) {
			if ends = append(ends, e); e.err != nil {
				return ends
			}
			a.shareNote(len(ends), e.report.Note)
		}
	}
	return ends
}

// deliverConcurrently delivers n of the Notifications of a to s at the same time, beginning with
// number from.
func (p *pool) deliverConcurrently(ctx context.Context, s pipeline.Sink, a Attempt, from, n int) []deliveryResult {
	ends := make([]deliveryResult, n)
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { ends[i] = p.deliver(ctx, s, a, from+i) })
	}
	ends[n-1] = p.deliver(ctx, s, a, from+n-1) // often the only one
	wg.Wait()
	return ends
}

// countDistinctDocuments returns how many Notifications in a row, beginning with number from, are of
// different documents, at most limit.
func (a Attempt) countDistinctDocuments(from, limit int) int {
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
func (p *pool) deliver(ctx context.Context, s pipeline.Sink, a Attempt, i int) (e deliveryResult) {
	if s == nil {
		return deliveryResult{err: fmt.Errorf("no sink named %q is configured", a.Receiver.Sink)}
	}
	var attributes []attribute.KeyValue
	if p.cfg.Tracer.On() {
		attributes = []attribute.KeyValue{
			attribute.String("vokter.sink", pageurl.Redacted(a.Receiver.Sink)), attribute.String("vokter.page", pageurl.Redacted(a.Notifications[i].URL)),
			attribute.String("vokter.notification", a.Notifications[i].ID),
		}
	}
	ctx, _, end := p.cfg.Tracer.Start(ctx, "deliver", a.contexts[i].trace, attributes...)
	h := &attemptHandle{document: a.contexts[i].document, note: a.contexts[i].note}
	defer func() {
		if r := recover(); r != nil {
			p.cfg.Logger.Error("a sink panicked", "sink", a.Receiver.Sink, "panic", oneLine(fmt.Sprint(r)), "stack", string(debug.Stack()))
			e.err = fmt.Errorf("the sink panicked: %v", r)
		}
		e.report = h.report()
		end(e.err)
	}()
	n := a.Notifications[i]
	if p.cfg.Link != nil {
		n.Link = p.cfg.Link(h.document, n)
	}
	if p.cfg.Source != nil {
		n.Source = p.cfg.Source()
	}
	e.err = s.Deliver(pipeline.WithAttempt(ctx, h), n)
	return e
}
