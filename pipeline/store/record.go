package store

import (
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// Record is a message as the log keeps it.
type Record struct {
	// Time is when it was appended, to the millisecond.
	Time time.Time
	// ID is the message's UUID.
	ID   string
	Meta map[string]string
	// Message, if not nil, is written instead of Meta: the headers that carry it. It is
	// nil in a record that was read.
	Message *flow.Message
	Payload []byte
}

// meta yields the headers of r.
func (r Record) meta() iter.Seq2[string, string] {
	if r.Message != nil {
		return r.Message.Attributes()
	}
	return maps.All(r.Meta)
}

// Size is about how many bytes r takes.
func (r Record) Size() int {
	n := len(r.ID) + len(r.Payload) + 32
	if m := r.Message; m != nil {
		n += 256 + len(m.ID) + len(m.Key) + len(m.Type) + len(m.Subject)
		for k, v := range m.Header {
			n += len(k) + len(v) + 8
		}
		return n
	}
	for k, v := range r.Meta {
		n += len(k) + len(v) + 8
	}
	return n
}

const recordFormat = 1

var errRecord = errors.New("store: malformed record")

func appendRecord(b []byte, r Record) []byte {
	b = append(b, recordFormat)
	b = binary.AppendVarint(b, r.Time.UnixMilli())
	b = appendBytes(b, r.ID)
	pairs := make([]string, 0, 32)
	for k, v := range r.meta() {
		pairs = append(pairs, k, v)
	}
	b = binary.AppendUvarint(b, uint64(len(pairs)/2))
	for _, s := range pairs {
		b = appendBytes(b, s)
	}
	return append(b, r.Payload...)
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseRecord reads a record; it copies what it keeps of b.
func parseRecord(b []byte) (Record, error) {
	if len(b) == 0 || b[0] != recordFormat {
		return Record{}, errRecord
	}
	ms, n := binary.Varint(b[1:])
	if n <= 0 {
		return Record{}, errRecord
	}
	c := cutter{b: b[1+n:]}
	r := Record{Time: time.UnixMilli(ms).UTC(), ID: c.bytes()}
	count := c.number()
	if c.bad || count > uint64(len(c.b)) {
		return Record{}, errRecord
	}
	r.Meta = make(map[string]string, count)
	for range count {
		k := c.bytes()
		r.Meta[k] = c.bytes()
	}
	if c.bad {
		return Record{}, errRecord
	}
	r.Payload = append([]byte{}, c.b...)
	return r, nil
}

// cutter takes lengths and byte strings off the front of b.
type cutter struct {
	b   []byte
	bad bool
}

func (c *cutter) number() uint64 {
	n, k := binary.Uvarint(c.b)
	if k <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[k:]
	return n
}

func (c *cutter) bytes() string {
	n := c.number()
	if n > uint64(len(c.b)) {
		c.bad = true
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}
