// Package changelog is the format of the topic "state", whose records hold, for each lane, the
// state and the positions of the consumer groups. A process keeps a copy of its lanes
// in Pebble, to which Apply writes.
package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/failure"
)

// stateFormat is the first byte of the keys in the state topic.
const stateFormat = 7

// Kinds of records, the second byte of their keys.
const (
	KindFence    = 'f' // value: a nonce. Who wrote it owns the lane from there on.
	KindTopics   = 't' // value: the topics that the owners knew, as JSON
	KindClock    = 'c' // value: the latest time seen, 8 bytes
	KindPosition = 'p' // group, topic. Value: the next offset to handle, as a uvarint
	KindState    = 's' // group, key, name. Value: as the group wrote it
)

// errRecord is Broken, like the other errors about records: retries do not fix it.
var errRecord = failure.Broken(errors.New("kafka: a record of the state topic is malformed"))

// Key is the key of a record of kind.
func Key(kind byte, parts ...string) string {
	k := []byte{stateFormat, kind}
	for _, p := range parts {
		k = binary.AppendUvarint(k, uint64(len(p)))
		k = append(k, p...)
	}
	return string(k)
}

// parseKey is the inverse of Key.
func parseKey(key string) (kind byte, parts []string, err error) {
	k := []byte(key)
	if len(k) < 2 {
		return 0, nil, errRecord
	}
	if k[0] != stateFormat {
		return 0, nil, failure.Broken(fmt.Errorf("kafka: the state topic was written by another version of Vokter (format %d, this one knows %d): use that version", k[0], stateFormat))
	}
	kind, k = k[1], k[2:]
	for len(k) > 0 {
		n, w := binary.Uvarint(k)
		if w <= 0 || n > uint64(len(k)-w) {
			return 0, nil, errRecord
		}
		parts = append(parts, string(k[w:w+int(n)]))
		k = k[w+int(n):]
	}
	want, known := map[byte]int{KindFence: 0, KindTopics: 0, KindClock: 0, KindPosition: 2, KindState: 3}[kind]
	if !known {
		return 0, nil, failure.Broken(fmt.Errorf("kafka: the state topic holds a record of the unknown kind %q: use the version of Vokter that wrote it", kind))
	}
	if len(parts) != want {
		return 0, nil, errRecord
	}
	return kind, parts, nil
}

// EncodeTime encodes a time with nanoseconds; a time before 1970 becomes 1970.
func EncodeTime(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))
}

// decodeTime is the inverse of EncodeTime.
func decodeTime(b []byte) (time.Time, error) {
	if len(b) < 8 {
		return time.Time{}, errRecord
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), nil
}

// EncodeOffset encodes a position.
func EncodeOffset(offset int64) []byte { return binary.AppendUvarint(nil, uint64(offset)) }

// decodeOffset is the inverse of EncodeOffset.
func decodeOffset(b []byte) (int64, error) {
	n, w := binary.Uvarint(b)
	if w <= 0 {
		return 0, errRecord
	}
	return int64(n), nil
}

// HeaderMarker is the header of markers: records that only mark a position in a topic, and that
// handlers do not get. Its value names the writer.
const HeaderMarker = "vokter_marker"

// Messages returns the records of state, which maps keys to values, in the order of the keys. A
// nil value is a tombstone.
func Messages(topic string, lane int, state map[string][]byte) []*sarama.ProducerMessage {
	ms := make([]*sarama.ProducerMessage, 0, len(state))
	for _, key := range slices.Sorted(maps.Keys(state)) {
		m := &sarama.ProducerMessage{Topic: topic, Partition: int32(lane), Key: sarama.StringEncoder(key)}
		if v := state[key]; v != nil {
			m.Value = sarama.ByteEncoder(v)
		}
		ms = append(ms, m)
	}
	return ms
}

// Fence returns the record that makes its writer the owner of a lane; nonce names the writer.
func Fence(topic string, lane int, nonce string) []*sarama.ProducerMessage {
	return Messages(topic, lane, map[string][]byte{Key(KindFence): []byte(nonce)})
}
