package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/store"
)

// Names of the topics of the transport itself, after the prefix.
const (
	topicLanes = "lanes" // nothing is in it; whose claim is a partition of it owns the lane
	topicState = "state" // the state of all groups, by lane
)

// stateFormat is the first byte of the keys in topicState.
const stateFormat = 1

// What a record in topicState says, as the second byte of its key.
const (
	kindFence    = 'f' // value: a nonce. Who wrote it owns the lane from there on.
	kindTopics   = 't' // value: the topics that the owners knew, as JSON
	kindClock    = 'c' // value: the latest time seen, 8 bytes
	kindPosition = 'p' // group, topic. Value: the next offset to handle, as a uvarint
	kindState    = 's' // group, key, name. Value: as the group wrote it
	kindWake     = 'w' // group, topic, key. Value: the time, 8 bytes, and 1 where it also comes at start
)

// Where the copy of a lane keeps what is the transport's own: as the state of a group whose
// name no other has.
const (
	ownGroup = "\x00kafka"
	ownKey   = "lane"
	// ownAt is the name of the offset of topicState up to which the copy is complete, and of
	// the time of the last record before it.
	ownAt = "\x00at"
)

// errRecord and what else is said of records does not pass by itself.
var errRecord = pipeline.Broken(errors.New("kafka: a record of the state topic is malformed"))

// stateKey is the key of a record of kind.
func stateKey(kind byte, parts ...string) string {
	k := []byte{stateFormat, kind}
	for _, p := range parts {
		k = binary.AppendUvarint(k, uint64(len(p)))
		k = append(k, p...)
	}
	return string(k)
}

// splitKey is the inverse of stateKey.
func splitKey(key string) (kind byte, parts []string, err error) {
	k := []byte(key)
	if len(k) < 2 {
		return 0, nil, errRecord
	}
	if k[0] != stateFormat {
		return 0, nil, pipeline.Broken(fmt.Errorf("kafka: the state topic was written by a newer version of Vokter (format %d, this one knows %d): use that version", k[0], stateFormat))
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
	want, known := map[byte]int{kindFence: 0, kindTopics: 0, kindClock: 0, kindPosition: 2, kindState: 3, kindWake: 3}[kind]
	if !known {
		return 0, nil, pipeline.Broken(fmt.Errorf("kafka: the state topic holds a record of the unknown kind %q: use the version of Vokter that wrote it", kind))
	}
	if len(parts) != want {
		return 0, nil, errRecord
	}
	return kind, parts, nil
}

func encodeTime(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(store.Nanoseconds(at)))
}

func decodeTime(b []byte) (time.Time, error) {
	if len(b) < 8 {
		return time.Time{}, errRecord
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), nil
}

func encodeOffset(offset int64) []byte { return binary.AppendUvarint(nil, uint64(offset)) }

func decodeOffset(b []byte) (int64, error) {
	n, w := binary.Uvarint(b)
	if w <= 0 {
		return 0, errRecord
	}
	return int64(n), nil
}

// encode is the value of a wake's record.
func (w wake) encode() []byte {
	b := encodeTime(w.at)
	if w.atStart {
		b = append(b, 1)
	}
	return b
}

func decodeWake(b []byte) (wake, error) {
	at, err := decodeTime(b)
	return wake{at: at, atStart: len(b) > 8 && b[8] == 1}, err
}

// copyRecord puts a record of topicState into b, a copy of its lane. A nil value deletes.
func copyRecord(b *store.Batch, lane int, key string, value []byte) error {
	kind, parts, err := splitKey(key)
	if err != nil {
		return err
	}
	group, of, name := ownGroup, ownKey, key
	switch kind {
	case kindFence:
		return nil
	case kindState:
		group, of, name = parts[0], parts[1], parts[2]
	}
	if value == nil {
		b.DeleteState(group, lane, of, name)
	} else {
		b.SetState(group, lane, of, name, value)
	}
	return nil
}
