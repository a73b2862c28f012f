package vokter

import (
	"iter"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
)

// Transport carries messages between the stages and keeps the state of their
// consumer groups. Package pipeline/local has the embedded one. Its promises are
// those that package pipelinetest tests; its transactions are pipeline.Broadcasters, too.
//
// These methods it may have besides:
//
//   - Start(ctx context.Context, w pipeline.Wiring) error, for one that connects to something
//     outside: Run calls it first. It returns once messages can be published, or an error that
//     says what to do, or the cause of ctx once that is done. Close is called whatever it returns.
//   - Ready() error says at any time, before Start too, why nothing goes on or nothing more is
//     taken in. Room() <-chan struct{} returns nil while more is taken in, otherwise a channel
//     that is closed when it is again.
//   - Owns(key string) bool and Gained() <-chan struct{}, where lanes are shared with other
//     processes. The first reports whether this process handles the messages of key now; States
//     yields such keys only. The second receives once lanes were gained, or it is settled that
//     there are none; what happens until it is received from is one.
//   - Tenure(key string) uint64, where lanes are shared: another number each time that this
//     process gets the messages of key to handle, since what it posted, or asked others for, in
//     an earlier one may be lost.
//   - Tail(ctx context.Context, topic string) (<-chan pipeline.Message, error) yields what any
//     process publishes on topic once it returned. The channel is closed when ctx is done, not
//     before; the error says that this can never be.
//   - String() string names the place of the data for the log.
type Transport interface {
	// Publish puts messages into their topics; when it returns nil they are durable.
	pipeline.Publisher
	// Unsynced returns a Publisher whose messages may be lost in a crash shortly after.
	Unsynced() pipeline.Publisher
	// Publisher collects into the transaction of the message's context, if it carries one.
	Publisher() message.Publisher
	// Subscriber consumes for group; the context of its messages carries a pipeline.Tx.
	Subscriber(group string) message.Subscriber
	// Poster hands messages straight to the lanes of group's consumer of topic.
	Poster(group, topic string) pipeline.Poster
	// State is the committed state of group for one key; it cannot be written to.
	State(group, key string) pipeline.State
	// States iterates over the committed state of group, by key.
	States(group string) iter.Seq2[string, pipeline.State]
	// Idle reports whether nothing is left to do; Activity moves with every commit.
	Idle() bool
	Activity() uint64
	// Close stops all consumers. What is not committed is dropped.
	Close() error
}
