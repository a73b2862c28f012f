package flow

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Processor handles one message at a time per key; what it wrote and emitted counts
// once it returned nil. It must be safe for concurrent use with different keys. A
// message may come again after an error or a crash: then nothing of the earlier
// attempt happened.
type Processor interface {
	Process(ctx context.Context, tx Tx, m Message) error
}

// ProcessorFunc is a function that is a Processor.
type ProcessorFunc func(ctx context.Context, tx Tx, m Message) error

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, tx Tx, m Message) error { return f(ctx, tx, m) }

// Middleware wraps a stage's Processor; what it adds happens in the same transaction. One
// that hands on a Tx of its own embeds the Tx that it got.
type Middleware func(Processor) Processor

// Tx is the transaction in which one message is handled: state, outputs and the
// consumer's position become durable together, or none does. It is valid until
// Process returns and must not be used by two goroutines at once.
type Tx interface {
	// Message is the message being handled, with its Topic and Position. Its Header is the
	// caller's own. It fails with a permanent error where a header that a message needs is
	// missing or malformed, and returns what is known of the message beside that.
	Message() (Message, error)
	// State is the state that this consumer group keeps for key, which must be the key
	// of the message being handled.
	State(key string) State
	// Emit publishes m to m.Topic with the commit, in the order of the calls.
	Emit(m Message)
	// EmitAll publishes m, which has no key, into every lane of its topic with the commit. Each
	// copy has an ID of its own that is derived from that of m. A lane is one of the parallel
	// parts of all topics: messages and state of one key stand in the same lane of each topic
	// and group, and one process at a time owns a lane.
	EmitAll(m Message)
	// Neighbours yields the keys in the lane of the message being handled for which group keeps
	// state, each with its state as it is committed, in no particular order. Where the store
	// fails it yields an empty key and a state whose reads fail.
	Neighbours(group string) iter.Seq2[string, State]
	// WakeAt delivers a message of TypeWake for key to this consumer at t or soon after
	// it, once. A later call replaces an earlier one for the same key; the zero time
	// takes it back. With AtStart the wake also comes when the consumer next starts,
	// if that is earlier: for work that died with the process that did it. It comes behind
	// the messages that waited then, since what came of that work may be among them.
	WakeAt(key string, t time.Time, opts ...WakeOption)
	// OnCommit runs f after the commit, in the order of the calls, and not at all if
	// there is none. It has run before this group's next message of the same key is handled.
	// f must not block.
	OnCommit(f func())
	// Sync makes the commit durable before its OnCommit functions run and the next message
	// comes: for handlers whose commit is reported to somebody outside.
	Sync()
	// Reset forgets all that was written, emitted and scheduled, so that a handler can be tried
	// again.
	Reset()
	// Fits returns why the transaction can never be committed, such as a message that is too
	// large for its topic, and otherwise nil.
	Fits() error
}

// WakeOption alters Tx.WakeAt.
type WakeOption int

// AtStart makes a wake come also when the consumer next starts.
const AtStart WakeOption = 1

// State is what a consumer group keeps for one key: values by name. Reads see what
// this transaction wrote. Names are any non-empty strings; order is that of bytes.
// The caller owns the slices it gets and may not change those it passes until the
// commit. An error means that the store failed; the handler returns it.
type State interface {
	// Get returns the value of name; ok is false where there is none. An empty value
	// is a value.
	Get(name string) (value []byte, ok bool, err error)
	// Set stores value under name.
	Set(name string, value []byte) error
	// Delete removes name; it is no error where there is none.
	Delete(name string) error
	// Scan iterates in order over the names that begin with prefix. The state must not
	// be written to meanwhile. A store's failure ends it with a non-nil error as the
	// last pair's Err.
	Scan(prefix string) iter.Seq2[string, Value]
}

// FailedState returns a state that can be neither read nor written, because of err.
func FailedState(err error) State { return failedState{err} }

type failedState struct{ err error }

func (f failedState) Get(string) ([]byte, bool, error) { return nil, false, f.err }

func (f failedState) Set(string, []byte) error { return f.err }

func (f failedState) Delete(string) error { return f.err }

func (f failedState) Scan(string) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) { yield("", Value{Err: f.err}) }
}

// Value is what State.Scan yields.
type Value struct {
	Bytes []byte
	Err   error
}

// Poster hands a message straight to the lane of its key, outside any log: m is lost
// if the process ends first. Pools use it to bring results back to the handler that
// owns the state. Post blocks while the lane's inbox is full, until ctx is done.
type Poster interface {
	Post(ctx context.Context, m Message) error
}

// Publisher puts messages into their topics from outside a handler. When Publish
// returns nil they are durable, all of them; it blocks while a topic is full.
type Publisher interface {
	Publish(ctx context.Context, ms ...Message) error
}

// ErrMoved is what a Poster returns for a key whose owner is another process by now: that
// one begins the work anew, and nothing is lost.
var ErrMoved = errors.New("the key went to another process")

type txKey struct{}

// WithTx returns a context that carries tx. Transports call it.
func WithTx(ctx context.Context, tx Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// TxFrom returns the transaction that ctx carries.
func TxFrom(ctx context.Context) (Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(Tx)
	return tx, ok
}

// Memory bounds how much memory the stages take at the same time for what needs much. It waits
// until there is room for bytes more, or where they are more than there is at all for all of
// it, and returns a function that gives the room back, to be called once. It fails with the
// cause of ctx where that ends first. It must be safe for concurrent use.
type Memory func(ctx context.Context, bytes int64) (free func(), err error)

// Take calls m. A nil Memory has no bound.
func (m Memory) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	return m(ctx, bytes)
}
