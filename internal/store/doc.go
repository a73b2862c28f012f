// Package store stores the data of the embedded transport in one Pebble database: logs of
// messages, the positions of consumer groups, their state and their wakes. The transport over
// Kafka has a store for its copies of the state. No other package knows the keys and values.
//
// A key begins with a letter for its kind. Strings in a key are escaped in a way that keeps their
// order and prefixes (see appendKeyString); numbers are big-endian.
//
//	m                                     → format, then JSON of what was fixed at creation
//	l topic lane offset                   → record
//	b topic lane                          → offset of the oldest message kept
//	p group topic lane                    → offset of the next message to consume
//	h group lane key name                 → value, as the stage wrote it, that changes often
//	q group lane key name                 → value that is small and read often
//	s group lane key name                 → any other value
//	c                                     → the latest time of the clock of its user
//	n namespace …                         → any of these but m, in a namespace with a name
package store
