// Package local is the embedded transport: Watermill publishers and subscribers over
// lanes of Go channels, with logs, positions, state and wakes (scheduled messages) in a store.
//
// A topic has a fixed number of lanes; the key of a message chooses its lane. Each
// consumer group has one message of a lane in flight and gets them in order. The
// message's context carries a flow.Tx. Ack commits what the handler wrote and
// emitted together with the group's position, in one batch; Nack drops it, and the
// message is delivered again after a pause.
//
// Without a directory, state and wakes are in a store in memory, and messages only in the
// memory of the process. Nothing of them can be read after Close.
package local
