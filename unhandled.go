package vokter

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/fetch"
)

// handleUnhandled handles a message that a Watermill middleware acknowledged without its handler. A published one
// goes to the dead letters. Wakes and results of work, on which a stage waits, reach their handler past the
// middleware; so do dead letters, since there is no other place for them.
func (r *Router) handleUnhandled(tx flow.Tx, u flow.Unhandled) error {
	m, err := tx.Message()
	if err != nil {
		m.Topic = u.Topic // a message that cannot be read is kept as it is
	}
	name := r.handlerName(consumer{group: u.Group, topic: u.Topic})
	log := r.cfg.Logger.With("handler", name, "type", clippedForLog(m.Type), "id", clippedForLog(m.ID), "page", clippedForLog(pageurl.Redacted(m.Subject)))
	if p := r.processorOf(u.Group, u.Topic); !u.Published || u.Group == flow.GroupDead {
		log.Error("a Watermill middleware acknowledged a message without calling its handler; it is handled past the middleware")
		return r.newHandler(u.Group, p)(message.NewMessageWithContext(flow.WithTx(context.Background(), tx), m.ID, nil))
	}
	log.Error("a Watermill middleware acknowledged a message without calling its handler; it goes to the dead letters")
	why := fmt.Sprintf("a Watermill middleware acknowledged it without calling the handler %s", name)
	tx.Emit(newDeadLetter(u.Group, m, failure.Permanent(fmt.Errorf("%s", why)), r.cfg.Now()).Message(m.ID, cmp.Or(m.Key, m.ID), m.Subject))
	if req, ok := checkOf(m); ok {
		tx.Emit(fetch.Failed(req, r.cfg.Now(), 0, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: why}).Message())
	}
	return nil
}

// checkOf returns the request of the check that ends with m, or would have begun with it. ok is false if there is
// none, or index knows that it failed.
func checkOf(m flow.Message) (req flow.Request, ok bool) {
	switch m.Type {
	case flow.TypeRequest:
		req, err := flow.RequestFrom(m)
		return req, err == nil
	case flow.TypeOutcome:
		o, err := flow.OutcomeFrom(m)
		return flow.Request{Page: o.Page, Incarnation: o.Incarnation, Check: o.Check, Nonce: o.Nonce}, err == nil && o.Kind != flow.OutcomeFailed
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
