package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// Record is one value of a group's state, or one of its wakes.
type Record struct {
	// Group keeps it, for Key.
	Group, Key string
	// Name and Value are of a state; Name is never empty there.
	Name  string
	Value []byte
	// Topic, At and AtStart are of a wake; see pipeline.Tx.WakeAt. At is never zero there.
	Topic   string
	At      time.Time
	AtStart bool
}

// IsWake tells a wake from a state.
func (r Record) IsWake() bool { return !r.At.IsZero() }

// line is a Record in a file.
type line struct {
	Topic   bytesText `json:"topic,omitzero"`
	Key     bytesText `json:"key"`
	Name    bytesText `json:"name,omitzero"`
	Value   []byte    `json:"value,omitempty"`
	At      time.Time `json:"at,omitzero"`
	AtStart bool      `json:"at_start,omitempty"`
}

var errLine = errors.New("a line is neither a state nor a wake")

func lineOf(r Record) line {
	l := line{Key: bytesText(r.Key)}
	if r.IsWake() {
		l.Topic, l.At, l.AtStart = bytesText(r.Topic), r.At.UTC(), r.AtStart
	} else {
		l.Name, l.Value = bytesText(r.Name), r.Value
	}
	return l
}

// parseLine reads one line of the file of group.
func parseLine(group string, b []byte) (Record, error) {
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	var l line
	if err := in.Decode(&l); err != nil {
		return Record{}, err
	}
	if _, err := in.Token(); err != io.EOF {
		return Record{}, errLine
	}
	return l.record(group)
}

// record is the inverse of lineOf.
func (l line) record(group string) (Record, error) {
	if l.At.IsZero() == (l.Name == "") {
		return Record{}, errLine
	}
	r := Record{Group: group, Key: string(l.Key), Topic: string(l.Topic), At: l.At, AtStart: l.AtStart}
	if !r.IsWake() {
		r.Name, r.Value = string(l.Name), append([]byte{}, l.Value...) // an empty value is a value
	}
	return r, nil
}

// bytesText is any bytes: a JSON string where they are UTF-8.
type bytesText string

type encoded struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON encodes t.
func (t bytesText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(encoded{[]byte(t)})
}

// UnmarshalJSON decodes t.
func (t *bytesText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e encoded
		err := json.Unmarshal(b, &e)
		*t = bytesText(e.Base64)
		return err
	}
	var s string
	err := json.Unmarshal(b, &s)
	*t = bytesText(s)
	return err
}
