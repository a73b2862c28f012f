// Package kafka is the transport for more than one machine: the topics are those of a Kafka
// cluster, and processes with the same Config share the work.
//
// A lane is partition p of every topic. One process at a time owns it, through the consumer
// group on the topic "lanes", and handles all groups' messages of it. What they write to
// their state, what they publish and where they stand in their topics goes into one Kafka
// transaction, many messages at a time: state and positions as records of the compacted topic
// "state", of which the process keeps a copy in Pebble. Who gets a lane fences its earlier
// owner and brings the copy up to date before the first message.
package kafka
