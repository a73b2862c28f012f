package vokter

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/fetch"
)

// handleUnhandled handles a message that a Watermill middleware acknowledged without its handler. A published one
// goes to the dead letters. Wakes and results of work, on which a stage waits, reach their handler past the
// middleware; so do failures of checks, which the next check waits for, and dead letters, since there is no other place
// for them.
func (r *run) handleUnhandled(tx flow.Tx, u flow.Unhandled) error {
	m, err := tx.Message()
	if err != nil {
		m.Topic = u.Topic // a message that cannot be read is kept as it is
	}
	name := r.handlerName(consumer{group: u.Group, topic: u.Topic})
	log := r.cfg.Logger.With("handler", name, "type", clippedForLog(m.Type), "id", clippedForLog(m.ID), "page", clippedForLog(pageurl.Redacted(m.Subject)))
	if p := r.processorOf(u.Group, u.Topic); !u.Published || u.Group == flow.GroupDead || isFailedCheck(u.Group, m) {
		log.Error("a Watermill middleware acknowledged a message without calling its handler; it is handled past the middleware")
		return r.newHandler(u.Group, p)(message.NewMessageWithContext(flow.WithTx(context.Background(), tx), m.ID, nil))
	}
	log.Error("a Watermill middleware acknowledged a message without calling its handler; it goes to the dead letters")
	why := fmt.Sprintf("a Watermill middleware acknowledged it without calling the handler %s", name)
	tx.Emit(newDeadLetter(u.Group, m, failure.Permanent(fmt.Errorf("%s", why)), r.cfg.Now()).Message(m.ID, cmp.Or(m.Key, m.ID), m.Subject))
	if req, ok := checkOf(u.Group, m); ok {
		tx.Emit(fetch.Failed(req, r.cfg.Now(), 0, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: why}).Message())
	}
	return nil
}

// isFailedCheck reports whether m tells group index that a check failed.
func isFailedCheck(group string, m flow.Message) bool {
	if group != flow.GroupIndex || m.Type != flow.TypeOutcome {
		return false
	}
	o, err := flow.OutcomeFrom(m)
	return err == nil && o.Kind == flow.OutcomeFailed
}

// checkOf returns the request of the check that ends with m in its group, or would have begun with it. ok is false if
// there is none.
func checkOf(group string, m flow.Message) (req flow.Request, ok bool) {
	switch {
	case group == flow.GroupFetch && m.Type == flow.TypeRequest:
		req, err := flow.RequestFrom(m)
		return req, err == nil
	case group == flow.GroupIndex && m.Type == flow.TypeOutcome:
		o, err := flow.OutcomeFrom(m)
		return flow.Request{Page: o.Page, Incarnation: o.Incarnation, Check: o.Check, Nonce: o.Nonce}, err == nil
	}
	return req, false
}

// processorOf returns the processor of the consumer group for topic.
func (r *Router) processorOf(group, topic string) flow.Processor {
	for _, c := range append(r.stages.consumers(), r.extraConsumers...) {
		if c.group == group && c.topic == topic {
			return c.processor
		}
	}
	return nil // there is no other consumer
}

// manyRejections is how often in a row a Watermill middleware may reject a message before that counts as a fault. It
// may have a reason to do so for a moment.
const manyRejections = 8

// rejectedMessages are the messages that a Watermill middleware has rejected at least manyRejections times in a row.
// They keep what follows them waiting.
type rejectedMessages struct {
	mu sync.Mutex
	// all has their handlers and IDs.
	all map[rejectedMessage]bool
}

type rejectedMessage struct{ handler, id string }

func (m *rejectedMessages) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}

// err returns an error that names a handler whose message is rejected again and again.
func (m *rejectedMessages) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for x := range m.all {
		return fmt.Errorf("a Watermill middleware rejects a message of the handler %s again and again (messages: %d): %s", x.handler, len(m.all), rejectionAdvice)
	}
	return nil
}

const rejectionAdvice = "it must call the handler with the message's own context, and return neither messages nor an error of its own"

// noteRejected notes that a Watermill middleware rejected a message, for the given time in a row; 0 says that the
// message does not come again. It logs that ever more rarely.
func (r *Router) noteRejected(u flow.Unhandled, id string, times int) {
	name := r.handlerName(consumer{group: u.Group, topic: u.Topic})
	key := rejectedMessage{name, id}
	m := &r.rejected
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case times == 0:
		delete(m.all, key)
		return
	case times < manyRejections:
		return
	case m.all == nil:
		m.all = make(map[rejectedMessage]bool)
	}
	m.all[key] = true
	if bits.OnesCount(uint(times)) == 1 {
		r.cfg.Logger.Error("a Watermill middleware rejects a message again and again; what follows waits: "+rejectionAdvice,
			"handler", name, "id", clippedForLog(id), "times", times)
	}
}
