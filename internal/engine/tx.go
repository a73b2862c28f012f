package engine

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// Kind is where a message to handle comes from.
type Kind int

// The kinds of work.
const (
	FromLog Kind = iota
	FromPost
	FromWake
	FromChain
)

// Work is one message to handle.
type Work struct {
	Kind Kind
	// Offset and Position say where the message is in its log. They are set only FromLog.
	Offset   int64
	Position string
	// Message is the message. It is nil if the log has only the ID, the metadata and the body. None
	// of them may be modified.
	Message *flow.Message
	ID      string
	Meta    map[string]string
	Body    []byte
	// Wake is set only FromWake.
	Wake Wake
	// Link is the link of a chain that handles the message; nil for the head.
	Link *Link
}

func (w Work) id() string {
	if w.Message != nil {
		return w.Message.ID
	}
	return w.ID
}

// Key returns the key of the message.
func (w Work) Key() string {
	if w.Message != nil {
		return w.Message.Key
	}
	return w.Meta[flow.HeaderKey]
}

// Effects are what the commit of a transaction does. O is an output as the backend writes it.
type Effects[O any] struct {
	Writes *Writes
	Out    []O
	// Wakes has at most one wake for each key. A zero At removes the wake.
	Wakes []Wake
	// LinkWakes are those of the links of the chain, at most one for each link and key.
	LinkWakes []LinkWake
	OnCommit  []func()
	Sync      bool
}

// Outputs makes outputs of messages. It is comparable: two are equal if they belong to the same
// transport.
type Outputs[O any] interface {
	// Lanes returns how many lanes each topic has.
	Lanes() int
	// Output returns m as an output to the lane of its key, or of its ID if it has no key.
	Output(m flow.Message) O
	// OutputTo returns m as an output to a lane.
	OutputTo(m flow.Message, lane int) O
	// Logged reports whether somebody may read a chained topic outside of the chain.
	Logged(topic string) bool
	// Fits returns nil, or why a transaction with these effects can never be committed.
	Fits(e *Effects[O]) error
}

// Tx is the transaction of one attempt to handle one message. It collects in memory what the
// handler does, for the backend to commit, and is safe for concurrent use.
type Tx[O any] struct {
	Group, Topic string
	Work         Work
	reader       Reader
	outputs      Outputs[O]

	overlay
	ownState state // of the key that Work is for, which most handlers use alone
	effects  Effects[O]
	// links are those of the chain; chained is what was emitted to it and not handed on yet.
	links    []*Link
	chained  []chainedMessage
	misfit   error // why the transaction cannot be committed
	handling handling
	// handlingEnds is closed when the handler has ended; nil while nobody waits for that.
	handlingEnds chan struct{}
}

// NewTx returns a transaction of group, which handles w of topic. What it emits to the topics of links is collected for
// HandOn.
func NewTx[O any](r Reader, outputs Outputs[O], group, topic string, w Work, links []*Link) *Tx[O] {
	x := &Tx[O]{Group: group, Topic: topic, Work: w, reader: r, outputs: outputs, links: links}
	x.ownState = state{r, &x.overlay, Place{group, w.Key()}}
	return x
}

// Join makes out part of the transaction of ctx. Joined is false if ctx has none of a transport
// with outputs.
func Join[O any](ctx context.Context, outputs Outputs[O], out []O) (joined bool, err error) {
	p, _ := flow.TxFrom(ctx)
	x, ok := p.(*Tx[O])
	if !ok || x.outputs != outputs {
		return false, nil
	}
	if !x.Collect(out...) {
		return true, ErrOver
	}
	return true, nil
}

// Message returns the message that is handled. Its header is a copy.
func (x *Tx[O]) Message() (flow.Message, error) {
	w, p := x.Work, x.Work.Message
	switch {
	case p == nil:
		return flow.Received(x.Topic, w.ID, w.Position, w.Meta, w.Body)
	case p.ID == "" || p.Type == "":
		return flow.Received(x.Topic, p.ID, w.Position, p.Metadata(), p.Encoded())
	}
	m := *p
	m.Header = maps.Clone(p.Header)
	m.Topic, m.Position = x.Topic, w.Position
	return m, nil
}

// State returns the state of the group for key.
func (x *Tx[O]) State(key string) flow.State {
	if key == x.ownState.place.Key {
		return &x.ownState
	}
	return &state{reader: x.reader, overlay: &x.overlay, place: Place{x.Group, key}}
}

// StateOf returns the state of another group for key, as it is within the transaction.
func (x *Tx[O]) StateOf(group, key string) flow.State {
	return View(within[O]{x}, Place{group, key})
}

// Neighbours yields the keys for which group keeps state in the lane, each with its committed
// state.
func (x *Tx[O]) Neighbours(group string) iter.Seq2[string, flow.State] {
	return Views(group, x.reader.Keys(group, ""), x.reader)
}

// Emit collects m, for HandOn if its topic is one of the chain.
func (x *Tx[O]) Emit(m flow.Message) {
	link := linkOf(x.links, m.Topic)
	if link == nil {
		x.Collect(x.outputs.Output(m))
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.chain(link, m)
	}
}

// EmitAll collects a copy of m for each lane.
func (x *Tx[O]) EmitAll(m flow.Message) {
	id := m.ID
	for i := range x.outputs.Lanes() {
		m.ID, m.Key = flow.DeriveID("lane", id, strconv.Itoa(i)), ""
		x.Collect(x.outputs.OutputTo(m, i))
	}
}

// Collect adds out. It returns false if the transaction is over.
func (x *Tx[O]) Collect(out ...O) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.effects.Out = append(x.effects.Out, out...)
	return true
}

// WakeAt collects a change of key's wake.
func (x *Tx[O]) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.setWake(Wake{Key: key, At: flow.WakeTime(at), AtStart: !at.IsZero() && slices.Contains(opts, flow.AtStart)})
	}
}

func (x *Tx[O]) setWake(w Wake) {
	e := &x.effects
	if i := e.wakeIndex(w.Key); i >= 0 {
		e.Wakes[i] = w
		return
	}
	e.Wakes = append(e.Wakes, w)
}

// wakeIndex returns the index of key's wake, or -1.
func (e *Effects[O]) wakeIndex(key string) int {
	return slices.IndexFunc(e.Wakes, func(w Wake) bool { return w.Key == key })
}

// typicalOnCommit is how many functions of OnCommit most transactions have at most.
const typicalOnCommit = 8

// OnCommit collects f.
func (x *Tx[O]) OnCommit(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	if x.effects.OnCommit == nil {
		x.effects.OnCommit = make([]func(), 0, typicalOnCommit)
	}
	x.effects.OnCommit = append(x.effects.OnCommit, f)
}

// Sync asks for a durable commit.
func (x *Tx[O]) Sync() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.effects.Sync = true
}

// Fits returns nil, or why the transaction can never be committed.
func (x *Tx[O]) Fits() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.misfit != nil {
		return x.misfit
	}
	return x.outputs.Fits(x.collected())
}

// Reset drops all that the attempt did so far.
func (x *Tx[O]) Reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.discard()
}

// Close ends the transaction without a commit. A handler that uses it afterwards gets ErrOver.
func (x *Tx[O]) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	x.discard()
}

func (x *Tx[O]) discard() {
	x.writes, x.effects, x.chained, x.misfit = Writes{}, Effects[O]{}, nil, nil
}

// collected returns what the transaction has collected. The caller holds x.mu.
func (x *Tx[O]) collected() *Effects[O] {
	x.effects.Writes = &x.writes
	return &x.effects
}

// Effects returns what the transaction has collected so far.
func (x *Tx[O]) Effects() Effects[O] {
	x.mu.Lock()
	defer x.mu.Unlock()
	return *x.collected()
}

// Commit calls commit with what the transaction has collected, and ends it if commit succeeds. A
// wake that was delivered is removed, unless the handler set it again. Commit must not use the
// transaction otherwise.
func (x *Tx[O]) Commit(commit func(*Effects[O]) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return ErrOver
	}
	if w := x.Work.Wake; x.Work.Kind == FromWake && x.effects.wakeIndex(w.Key) < 0 {
		x.setWake(Wake{Key: w.Key})
	}
	if link := x.Work.Link; link != nil {
		for _, w := range x.effects.Wakes {
			x.effects.setLinkWake(LinkWake{link, w})
		}
		x.effects.Wakes = nil
	}
	if err := commit(x.collected()); err != nil {
		return err
	}
	x.ended = true
	return nil
}
