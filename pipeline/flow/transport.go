// Package flow has what the engine of a pipeline is made of, and an author of a sink, a source
// or a reader never needs.
package flow

import (
	"context"
	"io"
	"iter"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Transport carries messages between the stages and keeps the state of their consumer groups.
// Package pipeline/local has the embedded one, package pipeline/kafka one that several processes
// share. Package pipelinetest tests its promises.
//
// A lane is one of the parallel parts of all topics: the messages and the state of one key stand
// in the same lane of each topic and group. One process at a time owns a lane.
type Transport interface {
	// Start connects the transport. The Router calls it once, before anything else but Ready,
	// Gauges and String. It returns once messages can be published, or an error that says what to
	// do, or the cause of ctx once that is done. Close is called whatever it returns.
	Start(ctx context.Context, w Wiring) error
	// Close stops all consumers. Whatever is not committed is dropped and comes again.
	Close() error
	// String names the place of the data for the log.
	String() string

	// Publish puts messages into their topics. They are durable when it returns nil.
	Publisher
	// Unsynced returns a Publisher whose messages may be lost in a crash shortly after.
	Unsynced() Publisher
	// Publisher returns a Watermill publisher. It collects into the transaction that the context
	// of a message carries, and publishes at once where it carries none.
	Publisher() message.Publisher
	// Subscriber returns a Watermill subscriber for group. The context of its messages carries a
	// Tx.
	Subscriber(group string) message.Subscriber
	// Poster hands messages straight to the lanes of group's consumer of topic.
	Poster(group, topic string) Poster
	// Tail yields the messages that other processes publish on topic after it returned, and
	// maybe those of this one. The channel is closed when ctx is done, not before. An error says
	// that the topic can never be read.
	Tail(ctx context.Context, topic string) (<-chan Message, error)

	// State returns the committed state of group for one key; it cannot be written to.
	State(group, key string) State
	// States iterates over the committed state of group, by key, in the lanes that this process
	// owns.
	States(group string) iter.Seq2[string, State]
	// BackupTo writes a consistent copy of the store to w. It returns an error of
	// errors.ErrUnsupported where the state is not kept in a store of this process.
	BackupTo(w io.Writer) error

	// Owns reports whether this process handles the messages of key now.
	Owns(key string) bool
	// Epoch is another number each time that this process gets the lane of key: whatever it
	// posted, or asked others for, in an earlier epoch may be lost. It is 0 where the process
	// owns all lanes for ever.
	Epoch(key string) uint64
	// Gained receives once lanes were gained, or it is settled that there are none. Several gains
	// before it is received from are one. The channel is nil where the process owns all lanes
	// from the start.
	Gained() <-chan struct{}

	// Ready returns why nothing goes on or nothing more is taken in, and otherwise nil. It may be
	// called at any time, also before Start.
	Ready() error
	// Room returns nil while more is taken in, otherwise a channel that is closed when it is
	// again.
	Room() <-chan struct{}
	// Idle reports whether nothing is left to do. Activity moves with every commit.
	Idle() bool
	Activity() uint64
	// Gauges returns figures for those who watch over the process. It returns at once, also
	// before Start.
	Gauges() []Gauge
}
