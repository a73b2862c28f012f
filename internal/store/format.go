package store

import (
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// Record is a message in a log.
type Record struct {
	// Time is when it was appended, to the millisecond.
	Time time.Time
	// ID is the message's UUID.
	ID   string
	Meta map[string]string
	// Message, if it is not nil, is encoded instead of Meta. It is nil in a record that was
	// read.
	Message *flow.Message
	Payload []byte
}

// Memory is about how many bytes of memory r takes.
func (r Record) Memory() int {
	if r.Message != nil {
		return r.Size() + r.Message.Held()
	}
	return r.Size()
}

// Size is about how many bytes r takes in a log.
func (r Record) Size() int {
	n, header := len(r.ID)+len(r.Payload)+32, r.Meta
	if m := r.Message; m != nil {
		n += 256 + len(m.ID) + len(m.Key) + len(m.Type) + len(m.Subject)
		header = m.Header
	}
	for k, v := range header {
		n += len(k) + len(v) + 8
	}
	return n
}

const recordFormat = 1

var errRecord = errors.New("store: malformed record")

func appendRecord(b []byte, r Record) []byte {
	b = append(b, recordFormat)
	b = binary.AppendVarint(b, r.Time.UnixMilli())
	b = appendLengthPrefixed(b, r.ID)
	header := maps.All(r.Meta)
	if r.Message != nil {
		header = r.Message.Attributes()
	}
	pairs := make([]string, 0, 32)
	for k, v := range header {
		pairs = append(pairs, k, v)
	}
	b = binary.AppendUvarint(b, uint64(len(pairs)/2))
	for _, s := range pairs {
		b = appendLengthPrefixed(b, s)
	}
	return append(b, r.Payload...)
}

func appendLengthPrefixed(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseRecord parses a record. The record does not share memory with b.
func parseRecord(b []byte) (Record, error) {
	if len(b) == 0 || b[0] != recordFormat {
		return Record{}, errRecord
	}
	ms, n := binary.Varint(b[1:])
	if n <= 0 {
		return Record{}, errRecord
	}
	c := decoder{rest: b[1+n:]}
	r := Record{Time: time.UnixMilli(ms).UTC(), ID: c.readString()}
	count := c.readUvarint()
	if c.failed || count > uint64(len(c.rest)) {
		return Record{}, errRecord
	}
	r.Meta = make(map[string]string, count)
	for range count {
		k := c.readString()
		r.Meta[k] = c.readString()
	}
	if c.failed {
		return Record{}, errRecord
	}
	r.Payload = append([]byte{}, c.rest...)
	return r, nil
}

// decoder parses lengths and byte strings from the front of b.
type decoder struct {
	rest   []byte
	failed bool
}

func (c *decoder) readUvarint() uint64 {
	n, k := binary.Uvarint(c.rest)
	if k <= 0 {
		c.failed = true
		return 0
	}
	c.rest = c.rest[k:]
	return n
}

func (c *decoder) readString() string {
	n := c.readUvarint()
	if n > uint64(len(c.rest)) {
		c.failed = true
		return ""
	}
	s := string(c.rest[:n])
	c.rest = c.rest[n:]
	return s
}

const (
	kindMeta     = 'm'
	kindLog      = 'l'
	kindLogStart = 'b'
	kindPosition = 'p'
	kindHot      = 'h' // before kindState, as all other kinds that are written often
	kindSmall    = 'q'
	kindState    = 's'
	kindLastSeen = 'c'
	// kindNamespace begins all keys of a namespace with a name; see namespacePrefix.
	kindNamespace = 'n'
)

var errKey = errors.New("store: malformed key")

// appendKeyString appends s so that keys sort like their strings and no encoded string is a prefix
// of another: 0x00 becomes 0x00 0xff, and 0x00 0x01 ends the string.
func appendKeyString(b []byte, s string) []byte {
	for {
		before, after, found := strings.Cut(s, "\x00")
		if b = append(b, before...); !found {
			return append(b, 0, 1)
		}
		b, s = append(b, 0, 0xff), after
	}
}

// cutKeyString is the inverse of appendKeyString; rest is what follows.
func cutKeyString(b []byte) (s string, rest []byte, err error) {
	var out []byte
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			out = append(out, b[i])
			continue
		}
		switch b[i+1] {
		case 1:
			return string(out), b[i+2:], nil
		case 0xff:
			out = append(out, 0)
			i++
		default:
			return "", nil, errKey
		}
	}
	return "", nil, errKey
}

// namespacePrefix is the beginning of the keys of a namespace. It is empty for the default namespace.
type namespacePrefix string

// laneKey begins a key of kind with strings and a lane.
func (s namespacePrefix) laneKey(kind byte, lane int, parts ...string) []byte {
	n := len(s) + 3
	for _, p := range parts {
		n += len(p) + 2
	}
	b := append(append(make([]byte, 0, n+48), s...), kind)
	for _, p := range parts {
		b = appendKeyString(b, p)
	}
	return binary.BigEndian.AppendUint16(b, uint16(lane))
}

// keyPrefix is laneKey without a lane: the prefix of all keys of kind with these strings.
func (s namespacePrefix) keyPrefix(kind byte, parts ...string) []byte {
	b := append([]byte(s), kind)
	for _, p := range parts {
		b = appendKeyString(b, p)
	}
	return b
}

func (s namespacePrefix) logKey(topic string, lane int, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(s.laneKey(kindLog, lane, topic), offset)
}

func (s namespacePrefix) logStartKey(topic string, lane int) []byte {
	return s.laneKey(kindLogStart, lane, topic)
}

// stateKinds are the kinds of the keys of states, in the order of their names. Values that change often,
// and small ones that are read often, are behind keys of kinds of their own. They would otherwise lie
// between the large values of all pages, and a compaction or a read would have to pass those each time.
var stateKinds = [...]byte{kindHot, kindSmall, kindState}

// stateKind returns the kind of the state with that name.
func stateKind(name string) byte {
	switch {
	case strings.HasPrefix(name, flow.Hot):
		return kindHot
	case strings.HasPrefix(name, flow.Small):
		return kindSmall
	}
	return kindState
}

// statePrefix returns the prefix of all names of key of a kind. The lane comes before the key, so that
// the state of a lane is one range of each kind.
func (s namespacePrefix) statePrefix(kind byte, group string, lane int, key string) []byte {
	return appendKeyString(s.laneKey(kind, lane, group), key)
}

func (s namespacePrefix) stateKey(group string, lane int, key, name string) []byte {
	return append(s.statePrefix(stateKind(name), group, lane, key), name...)
}

// prefixEnd returns the least key that sorts after all keys with prefix. prefix must contain a byte
// other than 0xff; the kind is one.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
