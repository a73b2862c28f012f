package sim

import (
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// tx is the transaction of one message.
type tx struct {
	*engine.Tx[laned]
	t   *transport
	c   consumer
	key string
	// foreign says that it touched another key.
	foreign bool

	// did is what it does, from the end of the handler on.
	did engine.Effects[laned]
}

var _ flow.Tx = (*tx)(nil)

// begin opens a transaction for h in its lane.
func (t *transport) begin(h handleable) *tx {
	w := engine.Work{Kind: h.kind, Message: &h.message, Position: h.message.Position, Wake: engine.Wake{Key: h.message.Key}}
	return &tx{Tx: engine.NewTx(h.l.state, t, h.c.Group, h.c.Topic, w), t: t, c: h.c, key: h.message.Key}
}

// end ends the transaction, whose effects are then to be committed.
func (x *tx) end() error {
	return x.Commit(func(e *engine.Effects[laned]) error {
		x.did = *e
		return nil
	})
}

func (x *tx) State(key string) flow.State {
	x.foreign = x.foreign || key != x.key
	return x.Tx.State(key)
}

func (x *tx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	x.foreign = x.foreign || key != x.key
	x.Tx.WakeAt(key, at.UTC(), opts...)
}

// place is where the group keeps state for the key.
func (x *tx) place() engine.Place { return engine.Place{Group: x.c.Group, Key: x.key} }

// wrote returns the values that are written, by name; nil is deleted.
func (x *tx) wrote() map[string][]byte {
	return x.Effects().Writes.Under(x.place(), "", make(map[string][]byte))
}

// emitted returns what x emits.
func (x *tx) emitted() []flow.Message {
	var ms []flow.Message
	for _, o := range x.did.Out {
		ms = append(ms, o.Message)
	}
	return ms
}

var _ engine.Outputs[laned] = (*transport)(nil)

// Lanes returns how many lanes there are.
func (t *transport) Lanes() int { return t.lanes }

// Output returns m with the lane of its key.
func (t *transport) Output(m flow.Message) laned { return laned{m, t.lane(m.Key)} }

// OutputTo returns m with a lane.
func (t *transport) OutputTo(m flow.Message, lane int) laned { return laned{m, lane} }

// Fits returns nil: a lane takes everything.
func (t *transport) Fits(*engine.Effects[laned]) error { return nil }
