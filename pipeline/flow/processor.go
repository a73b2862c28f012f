package flow

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Processor handles messages, those of one key one after the other. If Process returns nil, tx is
// committed. After an error or a crash tx is dropped, and the message is handled again. A Processor
// must be safe for concurrent use with different keys.
type Processor interface {
	Process(ctx context.Context, tx Tx, m Message) error
}

// ProcessorFunc is a function that is a Processor.
type ProcessorFunc func(ctx context.Context, tx Tx, m Message) error

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, tx Tx, m Message) error { return f(ctx, tx, m) }

// Middleware wraps the Processor of a stage. It works in the same transaction. To pass on a Tx of
// its own, it embeds the Tx that it got.
type Middleware func(Processor) Processor

// Tx is the transaction in which one message is handled. The written state, the emitted messages
// and the position of the consumer become durable together, or none of them does. A Tx is valid
// until Process returns, and must not be used by two goroutines at the same time.
type Tx interface {
	// Handle calls f, which handles the message, and returns its error. It drops what an earlier call
	// collected. Where the transport has Wiring.Unhandled, it commits only after a call that returned
	// nil. It must not be called by f.
	Handle(f func() error) error
	// Message returns the message that is handled, with its Topic and Position. The caller may change
	// its Header. Where a required header is missing or malformed, it returns a permanent error
	// together with the fields that could be read.
	Message() (Message, error)
	// State returns the state of this consumer group for key, which must be the key of the message.
	State(key string) State
	// StateOf returns the state of another group for key, which must be the key of the message. It can only be read.
	// In a chain it has what the other messages of the transaction wrote so far.
	StateOf(group, key string) State
	// Emit publishes m to m.Topic at the commit, in the order of the calls. If that topic is one of the chain that the
	// handler is in, the Chained group of the topic handles m before the commit: once this handler has returned, and
	// in the order of the calls, each message with all that follows from it. m must have the key of the message then.
	// Its handler works in a transaction within this one: what fails there leaves no trace here, and what succeeds is
	// committed with it.
	Emit(m Message)
	// EmitAll publishes m, which has no key, to every lane of its topic at the commit. The ID of each
	// copy is derived from that of m. See Transport for lanes.
	EmitAll(m Message)
	// Neighbours yields the keys for which group has state in the lane of the message, each with its
	// committed state, in no particular order. If the store fails, it yields an empty key and a
	// state whose reads fail.
	Neighbours(group string) iter.Seq2[string, State]
	// WakeAt delivers one message of TypeWake for key to this consumer at t or soon after. A later
	// call for the same key replaces it; the zero time cancels it. With AtStart the wake is also
	// delivered when the consumer next starts, if that is earlier: for work that the end of the
	// process interrupted. It then follows the messages that were waiting, because the result of
	// the work may be among them.
	WakeAt(key string, t time.Time, opts ...WakeOption)
	// OnCommit calls f after the commit, in the order of the calls. Without a commit f is not called.
	// It returns before this group handles the next message of the key, and must not block.
	OnCommit(f func())
	// Sync makes the commit durable before the functions of OnCommit are called and the next message
	// of the key is handled: for handlers that report the commit to somebody outside.
	Sync()
	// Reset drops everything that was written, emitted and scheduled, so that the handler can be
	// called again.
	Reset()
	// Fits returns nil, or why the transaction can never be committed, for example because a message
	// is too large for its topic.
	Fits() error
}

// WakeOption alters Tx.WakeAt.
type WakeOption int

// AtStart delivers a wake also when the consumer next starts.
const AtStart WakeOption = 1

// State is the state of a consumer group for one key: values by name. Reads see what this
// transaction wrote. A name is any non-empty string; names are ordered by their bytes. The caller
// may change the slices that it gets, but not those that it passes until the commit. An error means
// that the store failed; the handler returns it.
type State interface {
	// Get returns the value of name; ok is false if there is none. A value may be empty.
	Get(name string) (value []byte, ok bool, err error)
	// Set stores value under name.
	Set(name string, value []byte) error
	// Delete removes the value of name, if there is one.
	Delete(name string) error
	// Scan iterates in order over the names that begin with prefix. The state must not be written to
	// meanwhile. If the store fails, the last pair has a non-nil Err.
	Scan(prefix string) iter.Seq2[string, Value]
}

// Names of values may begin so. A store keeps the values with each of these prefixes together, in files
// without the large values of all keys. To a stage they are the same state.
const (
	// Hot is for values that change much more often than others of their key: the store need not
	// rewrite the others when it sorts its files.
	Hot = "\x00"
	// Small is for values that are read much more often than others of their key: a block that the store
	// reads has those of many keys.
	Small = "\x01"
)

// FailedState returns a State all of whose methods fail with err.
func FailedState(err error) State { return failedState{err} }

type failedState struct{ err error }

func (f failedState) Get(string) ([]byte, bool, error) { return nil, false, f.err }

func (f failedState) Set(string, []byte) error { return f.err }

func (f failedState) Delete(string) error { return f.err }

func (f failedState) Scan(string) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) { yield("", Value{Err: f.err}) }
}

// Value is a value that State.Scan yields, or an error.
type Value struct {
	Bytes []byte
	Err   error
}

// Poster sends a message to the consumer in this process that owns its key. The message is in no
// log and is lost if the process ends first. Goroutines that work for a handler send their results
// with it. Post blocks while the inbox of the lane is full, until ctx is done.
type Poster interface {
	Post(ctx context.Context, m Message) error
}

// Publisher publishes messages outside a transaction. When Publish returns nil, all of them are
// durable. It blocks while a topic is full.
type Publisher interface {
	Publish(ctx context.Context, ms ...Message) error
}

// ErrMoved is the error of a Poster for a key that another process owns now. That process
// repeats the work, so nothing is lost.
var ErrMoved = errors.New("the key went to another process")

type txKey struct{}

// WithTx returns a context that carries tx. Transports call it.
func WithTx(ctx context.Context, tx Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// TxFrom returns the transaction that ctx carries.
func TxFrom(ctx context.Context) (Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(Tx)
	return tx, ok
}

// Memory bounds the memory that the stages use at the same time for large texts. It waits until
// bytes more are available, or all of the memory if bytes are more than that, and returns a
// function that releases them, to be called once. If ctx is done first, it fails with the cause of
// ctx. It must be safe for concurrent use.
type Memory func(ctx context.Context, bytes int64) (free func(), err error)

// Take calls m. A nil Memory has no bound.
func (m Memory) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	return m(ctx, bytes)
}
