// Package flow has what the stages of the pipeline and its transports share: messages and their
// topics, transactions, commands, and the interface Transport. Authors of sinks, sources and
// readers need only package pipeline.
package flow

import (
	"context"
	"io"
	"iter"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Transport carries messages between the stages and keeps the state of their consumer groups.
// Package pipeline/local is the embedded transport, package pipeline/kafka the one that several
// processes share. Package pipelinetest has a suite that tests a Transport.
//
// All topics are divided into the same number of lanes, which are partitions in Kafka. A key
// belongs to one lane, with its messages in every topic and its state in every group. One process
// at a time owns a lane.
type Transport interface {
	// Start connects the transport. The Router calls it once; only Ready, Gauges and String may be
	// called before it. It returns when messages can be published, with an error that says what to
	// do, or with the cause of ctx when ctx is done. The Router calls Close after it in any case.
	Start(ctx context.Context, w Wiring) error
	// Close stops all consumers. Transactions that are not committed are dropped, and their messages
	// are handled again after the next start.
	Close() error
	// String names the place of the data, for logs.
	String() string

	// Publish publishes messages. They are durable when it returns nil.
	Publisher
	// Unsynced returns a Publisher that does not wait until messages are durable: a crash soon after
	// may lose them.
	Unsynced() Publisher
	// Publisher returns a Watermill publisher. A message whose context carries a Tx is published with
	// that transaction, any other at once.
	Publisher() message.Publisher
	// Subscriber returns a Watermill subscriber for group. The context of its messages carries a
	// Tx.
	Subscriber(group string) message.Subscriber
	// Publishes reports whether messages of topic can be read: a consumer group reads them here, or other programs
	// may. Messages that nobody can read need not be made.
	Publishes(topic string) bool
	// Poster returns a Poster to the consumer of topic in group.
	Poster(group, topic string) Poster
	// Tail returns the messages that other processes publish to topic from now on, and perhaps those
	// of this process. The channel is closed when ctx is done, not before. An error means that the
	// topic can never be read.
	Tail(ctx context.Context, topic string) (<-chan Message, error)

	// State returns the committed state of group for key. Writing to it fails.
	State(group, key string) State
	// States iterates over the committed state of group in the lanes that this process owns, in the
	// order of the keys. It begins behind the key after; an empty after means at the beginning.
	States(group, after string) iter.Seq2[string, State]
	// BackupTo writes a consistent copy of the store to w. It returns an error of
	// errors.ErrUnsupported where the state is not kept in a store of this process.
	BackupTo(w io.Writer) error

	// Owns reports whether this process handles the messages of key now.
	Owns(key string) bool
	// Owner names, for people, the process that handles the messages of key. It is empty where that is not
	// known, or none does at the moment. It may ask a broker and wait for seconds.
	Owner(key string) string
	// Epoch returns a number that changes each time this process becomes the owner of the lane of
	// key. Messages that it posted or requests that it made in an earlier epoch may be lost. The
	// epoch is always 0 where the process owns all lanes.
	Epoch(key string) uint64
	// Gained returns a channel that receives after a rebalance, when this process can handle its new
	// lanes or got none. Several rebalances may give one receive. The channel is nil where the
	// process owns all lanes.
	Gained() <-chan struct{}

	// Ready returns nil, or why the transport does not work or accepts no messages, for example
	// because the disk is full. It may be called before Start.
	Ready() error
	// Room returns nil while the transport accepts messages, and otherwise a channel that is closed
	// when it does again.
	Room() <-chan struct{}
	// Idle reports whether all messages are handled and no wake is due.
	Idle() bool
	// Activity returns a counter that grows with every commit.
	Activity() uint64
	// Gauges returns figures for monitoring, without blocking. It may be called before Start.
	Gauges() []Gauge
}
