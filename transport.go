package vokter

import (
	"iter"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
)

// Transport carries messages between the stages and keeps the state of their
// consumer groups. Package pipeline/local has the embedded one. Its promises are
// those that package pipelinetest tests. A Transport that cannot take in more for a while
// says so with two methods more: Ready() error, and Room() <-chan struct{}, which returns nil
// while it can, otherwise a channel that is closed when it can again.
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
