// Package store keeps what the embedded transport must not forget: logs of messages,
// the positions of consumer groups, their state and their wakes, in one Pebble
// database. The transport over Kafka keeps its copies of the state in one as well. It is
// the only code that knows keys and value formats.
//
// All keys begin with a letter for their kind. Strings within a key are escaped so that
// order and prefixes survive (see appendString); numbers are big-endian.
//
//	m                                     → format, then JSON of what was fixed at creation
//	l topic lane offset                   → record
//	b topic lane                          → offset of the oldest message kept
//	p group topic lane                    → offset of the next message to consume
//	s group lane key name                 → value, as the stage wrote it
//	w group topic lane time key           → nothing
//	r group topic lane key                → time of the key's wake
//	a group topic lane key                → time of the key's wake, if it also comes at start
//	c                                     → the latest time that its user saw
//	n namespace …                         → any of these but m, in a namespace with a name
package store
