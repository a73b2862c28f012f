package sim

import (
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// tx is the transaction of one message.
type tx struct {
	*engine.Tx[routedMessage]
	transport *transport
	consumer  consumer
	key       string
	// touchedOtherKey says that it touched another key.
	touchedOtherKey bool
	emitted         []flow.Message
	// inner are those of the chain that became a part of it, in order.
	inner []*tx

	// effects are set when the handler ended.
	effects engine.Effects[routedMessage]
}

var _ flow.Tx = (*tx)(nil)

// beginTx opens a transaction for h in its lane.
func (t *transport) beginTx(h workItem) *tx {
	w := engine.Work{Kind: h.kind, Message: &h.message, Position: h.message.Position, Wake: engine.Wake{Key: h.message.Key}}
	links := h.l.links()
	if i := slices.IndexFunc(links, func(l *engine.Link) bool { return l.Consumer == h.c }); i >= 0 {
		w.Link = links[i]
	}
	if w.Link == nil && h.c != chain.Head {
		links = nil
	}
	return t.wrapTx(engine.NewTx(h.l.state, t, h.c.Group, h.c.Topic, w, links))
}

func (t *transport) wrapTx(x *engine.Tx[routedMessage]) *tx {
	return &tx{Tx: x, transport: t, consumer: consumer{Group: x.Group, Topic: x.Topic}, key: x.Work.Key()}
}

// collectEffects ends the transaction and keeps its effects, which are then to be committed.
func (x *tx) collectEffects() error {
	return x.Commit(func(e *engine.Effects[routedMessage]) error {
		x.effects = *e
		return nil
	})
}

func (x *tx) State(key string) flow.State {
	x.touchedOtherKey = x.touchedOtherKey || key != x.key
	return x.Tx.State(key)
}

func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	x.touchedOtherKey = x.touchedOtherKey || key != x.key
	x.Tx.WakeAt(key, at.UTC(), opts...)
}

func (x *tx) Emit(m flow.Message) {
	x.emitted = append(x.emitted, m)
	x.Tx.Emit(m)
}

// place is where the group keeps state for the key.
func (x *tx) place() engine.Place { return engine.Place{Group: x.consumer.Group, Key: x.key} }

// all yields x and what became a part of it.
func (x *tx) all() []*tx {
	all := []*tx{x}
	for _, inner := range x.inner {
		all = append(all, inner.all()...)
	}
	return all
}

var _ engine.Outputs[routedMessage] = (*transport)(nil)

// Lanes returns how many lanes there are.
func (t *transport) Lanes() int { return t.lanes }

// Output returns m with the lane of its key.
func (t *transport) Output(m flow.Message) routedMessage { return routedMessage{m, t.laneOf(m.Key)} }

// OutputTo returns m with a lane.
func (t *transport) OutputTo(m flow.Message, lane int) routedMessage { return routedMessage{m, lane} }

// Logged reports whether topic has a log.
func (t *transport) Logged(topic string) bool { return topics[topic].HasLog() }

// Fits returns nil: a lane takes everything.
func (t *transport) Fits(*engine.Effects[routedMessage]) error { return nil }
