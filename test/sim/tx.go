package sim

import (
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

	// effects are set when the handler ended.
	effects engine.Effects[routedMessage]
}

var _ flow.Tx = (*tx)(nil)

// beginTx opens a transaction for h in its lane.
func (t *transport) beginTx(h workItem) *tx {
	w := engine.Work{Kind: h.kind, Message: &h.message, Position: h.message.Position, Wake: engine.Wake{Key: h.message.Key}}
	return &tx{Tx: engine.NewTx(h.l.state, t, h.c.Group, h.c.Topic, w), transport: t, consumer: h.c, key: h.message.Key}
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

// place is where the group keeps state for the key.
func (x *tx) place() engine.Place { return engine.Place{Group: x.consumer.Group, Key: x.key} }

// writtenValues returns the values that are written, by name; nil is deleted.
func (x *tx) writtenValues() map[string][]byte {
	return x.Effects().Writes.Under(x.place(), "", make(map[string][]byte))
}

// emittedMessages returns what x emits.
func (x *tx) emittedMessages() []flow.Message {
	var ms []flow.Message
	for _, o := range x.effects.Out {
		ms = append(ms, o.Message)
	}
	return ms
}

var _ engine.Outputs[routedMessage] = (*transport)(nil)

// Lanes returns how many lanes there are.
func (t *transport) Lanes() int { return t.lanes }

// Output returns m with the lane of its key.
func (t *transport) Output(m flow.Message) routedMessage { return routedMessage{m, t.laneOf(m.Key)} }

// OutputTo returns m with a lane.
func (t *transport) OutputTo(m flow.Message, lane int) routedMessage { return routedMessage{m, lane} }

// Fits returns nil: a lane takes everything.
func (t *transport) Fits(*engine.Effects[routedMessage]) error { return nil }
