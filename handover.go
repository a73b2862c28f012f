package vokter

import (
	"bytes"
	"context"
	"slices"

	"github.com/vokter/vokter/internal/bounded"
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

// changeCacheBytes is how much memory the changes of a Router take that were made and not matched yet.
const changeCacheBytes = 8 << 20

// changeCache hands changes from the stage diff to the stage match where both run in this process, so
// that match need not decode them. A change that is missing, because another process made it or
// because there were too many, is decoded from its message, which the log has in any case.
type changeCache struct {
	cache *bounded.Cache[string, cachedChange]
}

type cachedChange struct {
	change *flow.Change
	body   []byte
}

func newChangeCache() *changeCache {
	return &changeCache{bounded.New[string, cachedChange](changeCacheBytes)}
}

// add keeps c, which m carries and which takes so many bytes of memory.
func (h *changeCache) add(c *flow.Change, m flow.Message, bytes int64) {
	if bytes <= changeCacheBytes/2 {
		h.cache.Put(m.ID, cachedChange{c, m.Body}, bytes)
	}
}

// take returns the change that m carries, once, or nil. The body of m must be the one that the
// change was encoded to: middleware and other programs may have written another one.
func (h *changeCache) take(m flow.Message) *flow.Change {
	made, ok := h.cache.Take(m.ID)
	if !ok || m.Type != flow.TypeChange || !bytes.Equal(m.Body, made.body) {
		return nil
	}
	return made.change
}
