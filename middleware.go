package vokter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// retryDelays are the waits between the attempts to handle one message. They add up to less
// than four seconds, because the rest of the lane waits too.
var retryDelays = []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond, time.Second, 2 * time.Second}

// maxTraceBytes is the size of the largest trace that is passed on, in bytes. W3C's has 55; later
// versions may have more.
const maxTraceBytes = 512

// withMiddleware returns stage with Config.Middleware around it. A message that the middleware keeps from the stage
// fails.
func withMiddleware(stage flow.Processor, around []flow.Middleware) flow.Processor {
	if len(around) == 0 {
		return stage
	}
	type reachedKey struct{}
	p := flow.Processor(flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		reached, ok := ctx.Value(reachedKey{}).(*bool)
		if !ok {
			return failure.Permanent(errors.New("a middleware of Config.Middleware did not hand on its context"))
		}
		*reached = true
		return stage.Process(ctx, tx, m)
	}))
	for _, m := range slices.Backward(around) {
		p = m(p)
	}
	return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		reached := false
		m.Body = m.Encoded()
		err := p.Process(context.WithValue(ctx, reachedKey{}, &reached), tx, m)
		if err == nil && !reached {
			err = failure.Permanent(errors.New("a middleware of Config.Middleware returned nil without calling the stage"))
		}
		return err
	})
}

// recoverPanics turns a panic of next into a permanent error and logs its stack.
func recoverPanics(log *slog.Logger) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) (err error) {
			defer func() {
				if r := recover(); r != nil {
					log.Error("handling a message panicked", "topic", m.Topic, "id", clippedForLog(m.ID), "panic", r, "stack", string(debug.Stack()))
					err = failure.Permanent(fmt.Errorf("panic: %v", r))
				}
			}()
			return next.Process(ctx, tx, m)
		})
	}
}

// requireCommittable returns an error where the transport can never commit the transaction, for example
// because it is too large. The message would otherwise be redelivered without end.
func requireCommittable(next flow.Processor) flow.Processor {
	return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		if err := next.Process(ctx, tx, m); err != nil {
			return err
		}
		return tx.Fits()
	})
}

// stopOnBroken stops the Router on an error of class broken, because going on could lose data. The
// message is not committed: the next run handles it again.
func (r *run) stopOnBroken(group string) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			err := next.Process(ctx, tx, m)
			if class, _ := failure.ClassOf(err); class == failure.ClassBroken && ctx.Err() == nil {
				remedy := r.poison.saveStopped(&Stopped{DeadLetter: newDeadLetter(group, m, err, r.cfg.Now()).Bounded(), Position: m.Position})
				r.stopWith(fmt.Errorf("%s cannot handle message %s of topic %q (%s): %w; %s", group, clippedForLog(m.ID), m.Topic, clippedForLog(m.Type), err, remedy))
			}
			return err
		})
	}
}

// newDeadLetter returns the dead letter of m, which group cannot handle.
func newDeadLetter(group string, m flow.Message, err error, now time.Time) flow.DeadLetter {
	d := flow.DeadLetter{
		Reason: err.Error(), Time: now, Attempts: 1,
		Group: group, Topic: m.Topic, Headers: m.Metadata(), Body: m.Encoded(),
	}
	if e, ok := errors.AsType[*exhaustedError](err); ok {
		d.Attempts = e.attempts
	}
	return d
}

// exhaustedError is the error of the last attempt to handle a message, with the number of attempts.
type exhaustedError struct {
	error
	attempts int
}

func (e *exhaustedError) Unwrap() error { return e.error }

// retryFailures calls next again where the class of its error asks for it, each time with an empty
// transaction. It gives up after the last of retryDelays.
func retryFailures(log *slog.Logger, sleep func(context.Context, time.Duration) error) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			failures := 0
			for {
				err := next.Process(ctx, tx, m)
				if err == nil {
					return nil
				}
				class, after := failure.ClassOf(err)
				var pause time.Duration
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case class == failure.ClassRetry && failures < len(retryDelays):
					pause = min(max(retryDelays[failures], after), retryDelays[len(retryDelays)-1])
					failures++
					log.Debug("handling a message failed; trying again", "topic", m.Topic, "id", clippedForLog(m.ID), "attempt", failures, "err", err)
				default:
					return &exhaustedError{err, failures + 1}
				}
				if err := sleep(ctx, pause); err != nil {
					return err
				}
				tx.Reset()
			}
		})
	}
}

// moveToDeadLetters moves a message that cannot be handled to the dead letters, in the transaction
// that also moves the position past it. A cancelled attempt is not a failure: the message is
// redelivered.
func moveToDeadLetters(group string, log *slog.Logger, now func() time.Time) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			err := next.Process(ctx, tx, m)
			class, _ := failure.ClassOf(err)
			if err == nil || class == failure.ClassCanceled || class == failure.ClassBroken || ctx.Err() != nil {
				return err
			}
			tx.Reset()
			if m.Type == flow.TypeWake {
				m.Subject = m.Key // in most groups the page
			}
			log.Error("a message could not be handled and goes to the dead letters", "topic", m.Topic, "type", clippedForLog(m.Type), "id", clippedForLog(m.ID),
				"page", clippedForLog(pageurl.Redacted(m.Subject)), "err", flow.Clipped(err.Error(), 2000))
			d := newDeadLetter(group, m, err, now())
			tx.Emit(d.Message(m.ID, cmp.Or(m.Key, m.ID), m.Subject))
			return nil
		})
	}
}

// clippedForLog clips s for the log, because anybody may have written it.
func clippedForLog(s string) string { return flow.Clipped(s, 200) }

// refusePublishedWakes refuses wakes that were published to a topic: only the transport makes wakes.
func refusePublishedWakes(next flow.Processor) flow.Processor {
	return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake && m.Position != "" {
			return failure.Permanent(fmt.Errorf("messages of type %s are never published: this one was not sent by vokter", m.Type))
		}
		return next.Process(ctx, tx, m)
	})
}

// traceMessages gives every message that next emits the trace of the message that caused it. Where
// that message has none, a new trace begins. With a tracer the handling of the message is a span of the
// trace. Without one the ID of a new trace is derived from the ID of the message.
func traceMessages(group string, tracer span.Tracer) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			parent := m.Trace
			if len(parent) > maxTraceBytes {
				parent = "" // it could make the emitted messages too large to be published
			}
			if tracer.On() {
				var end func(error)
				ctx, parent, end = tracer.Start(ctx, group+" "+m.Topic, parent,
					attribute.String("vokter.message.type", clippedForLog(m.Type)), attribute.String("vokter.page", clippedForLog(pageurl.Redacted(m.Subject))))
				err := next.Process(ctx, &tracedTx{Tx: tx, parent: parent}, m)
				end(err)
				return err
			}
			return next.Process(ctx, &tracedTx{Tx: tx, parent: parent, id: m.ID}, m)
		})
	}
}

// tracedTx adds a trace to every message emitted through it: parent, or one that begins with the
// message id if there is no parent.
type tracedTx struct {
	flow.Tx
	parent, id string
}

func (t *tracedTx) Emit(m flow.Message) { t.Tx.Emit(t.withTrace(m)) }

// EmitAll gives every copy the trace.
func (t *tracedTx) EmitAll(m flow.Message) { t.Tx.EmitAll(t.withTrace(m)) }

// withTrace returns m with the trace, unless it has one.
func (t *tracedTx) withTrace(m flow.Message) flow.Message {
	if m.Trace != "" || t.parent == "" && t.id == "" {
		return m
	}
	if m.Trace = t.parent; t.parent == "" {
		m.Trace = flow.TraceParent(t.id)
	}
	return m
}

// sleepContext waits for d. It returns the cause of ctx where ctx is done earlier.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handsOverRequests reports whether index hands requests over to fetch without their topic. It does not where the
// program may look at them: with middleware of its own around fetch, or a consumer of that topic.
func (r *Router) handsOverRequests() bool {
	return r.cfg.Mode == ModeAll && r.cfg.Watermill == nil && len(r.cfg.WatermillMiddleware) == 0 && len(r.cfg.Middleware[flow.GroupFetch]) == 0 &&
		!slices.ContainsFunc(r.extraConsumers, func(b consumer) bool { return b.topic == flow.TopicRequests })
}

// handOverRequests passes a request to take after the commit if this process owns its key when it is
// emitted. Other requests are published.
func handOverRequests(owns func(key string) bool, take func(flow.Message)) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			return next.Process(ctx, &handoverTx{tx, owns, take}, m)
		})
	}
}

// handoverTx is a transaction whose requests do not leave the process.
type handoverTx struct {
	flow.Tx
	owns func(key string) bool
	take func(flow.Message)
}

func (t *handoverTx) Emit(m flow.Message) {
	if m.Topic != flow.TopicRequests || !t.owns(m.Key) {
		t.Tx.Emit(m)
		return
	}
	t.OnCommit(func() { t.take(m) })
}
