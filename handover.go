package vokter

import (
	"context"
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

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
