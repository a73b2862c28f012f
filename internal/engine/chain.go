package engine

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Chain is a group of consumers that share transactions. The head handles a message, and each chained topic has a group
// that handles the messages that result from it. A nil Chain has no consumers.
type Chain struct {
	Head    Consumer
	members []Consumer // sorted by topic
}

// ChainOf returns the chain that topics declare, or nil if they declare none.
func ChainOf(topics map[string]flow.Topic) *Chain {
	c := new(Chain)
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		if t.Head != "" {
			c.Head = Consumer{t.Head, name}
		}
		if t.Chained != "" {
			c.members = append(c.members, Consumer{t.Chained, name})
		}
	}
	if c.Head.Group == "" {
		return nil
	}
	return c
}

// HeadOf returns the consumer whose runner delivers the messages of who.
func (c *Chain) HeadOf(who Consumer) Consumer {
	if c.Has(who) {
		return c.Head
	}
	return who
}

// Has reports whether who gets its messages in transactions of the head.
func (c *Chain) Has(who Consumer) bool { return c != nil && slices.Contains(c.members, who) }

// Behind returns the consumers that get their messages in transactions of who.
func (c *Chain) Behind(who Consumer) []Consumer {
	if c == nil || who != c.Head {
		return nil
	}
	return c.members
}

// Link is a consumer of a chain in one lane, with its wakes there.
type Link struct {
	Consumer
	Wakes *Wakes
}

// LinkWake is the wake that a Link asked for.
type LinkWake struct {
	*Link
	Wake
}

// chainedMessage is a message to hand on. At is how many outputs were emitted before it.
type chainedMessage struct {
	link *Link
	flow.Message
	at int
}

// linkOf returns the link that gets the messages of topic, or nil.
func linkOf(links []*Link, topic string) *Link {
	for _, l := range links {
		if l.Topic == topic {
			return l
		}
	}
	return nil
}

// HandOn gives each message that x emitted to its chain to handle, in order, and makes what that did a part of x.
// Handle gets a transaction within x and returns the one that holds the result: that, or another attempt at the same
// message. If it returns nil, so does HandOn, and the rest is not handled. Nobody else may use x meanwhile.
func (x *Tx[O]) HandOn(handle func(inner *Tx[O]) *Tx[O]) bool {
	x.mu.Lock()
	todo, own := x.chained, x.effects.Out
	x.chained = nil
	if len(todo) > 0 {
		x.effects.Out = nil
	}
	x.mu.Unlock()
	at := 0
	for _, m := range todo {
		w := Work{Kind: FromChain, Message: &m.Message, Link: m.link}
		done := handle(NewTx[O](within[O]{x}, x.outputs, m.link.Group, m.link.Topic, w, x.links))
		if done == nil {
			return false
		}
		x.Collect(own[at:m.at]...)
		at = m.at
		x.merge(done)
	}
	if len(todo) > 0 {
		x.Collect(own[at:]...)
	}
	return true
}

// Again returns a transaction for another attempt at the message of x.
func (x *Tx[O]) Again() *Tx[O] { return NewTx(x.reader, x.outputs, x.Group, x.Topic, x.Work, x.links) }

// merge makes the effects of inner a part of x.
func (x *Tx[O]) merge(inner *Tx[O]) {
	_ = inner.Commit(func(e *Effects[O]) error { // fails only if it has ended
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.ended {
			return ErrOver
		}
		for w := range e.Writes.All() {
			x.writes.Set(w.Place, w.Name, w.Value)
		}
		x.effects.Out = append(x.effects.Out, e.Out...)
		for _, w := range e.LinkWakes {
			x.effects.setLinkWake(w)
		}
		x.effects.OnCommit = append(x.effects.OnCommit, e.OnCommit...)
		x.effects.Sync = x.effects.Sync || e.Sync
		return nil
	})
}

// setLinkWake sets the wake of a link, in place of an earlier one of the key.
func (e *Effects[O]) setLinkWake(w LinkWake) {
	i := slices.IndexFunc(e.LinkWakes, func(o LinkWake) bool { return o.Link == w.Link && o.Key == w.Key })
	if i >= 0 {
		e.LinkWakes[i] = w
		return
	}
	e.LinkWakes = append(e.LinkWakes, w)
}

// chain collects m for link, and makes it an output if the log of its topic is read.
func (x *Tx[O]) chain(link *Link, m flow.Message) {
	if m.Key != x.Work.Key() {
		x.misfit = failure.Permanent(fmt.Errorf("message %s for topic %s has another key than the message that is handled", flow.Clipped(m.ID, 200), m.Topic))
		return
	}
	if x.outputs.Logged(m.Topic) {
		x.effects.Out = append(x.effects.Out, x.outputs.Output(m))
	}
	x.chained = append(x.chained, chainedMessage{link, m, len(x.effects.Out)})
}

// within is a Reader of the state that a transaction sees: its own writes hide the committed values.
type within[O any] struct{ tx *Tx[O] }

func (r within[O]) Value(p Place, name string) (value []byte, ok bool, err error) {
	return (&state{reader: r.tx.reader, overlay: &r.tx.overlay, place: p}).Get(name)
}

func (r within[O]) Values(p Place, prefix string) iter.Seq2[string, flow.Value] {
	return (&state{reader: r.tx.reader, overlay: &r.tx.overlay, place: p}).Scan(prefix)
}

func (r within[O]) Keys(group, after string) iter.Seq2[string, error] {
	return r.tx.reader.Keys(group, after)
}
