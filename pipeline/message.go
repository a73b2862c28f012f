package pipeline

import (
	"fmt"
	"maps"
	"time"
)

// Message is what travels through a topic. On the wire its attributes are headers
// named as the CloudEvents Kafka protocol binding names them (ce_id, ce_type, ...);
// see Metadata.
type Message struct {
	// ID identifies the message; it is derived from its content or cause, never random,
	// so that handling a message twice yields the same IDs. ce_id on the wire.
	ID string
	// Topic is one of the Topic constants or a topic of the user's. It is not on the wire.
	Topic string
	// Key names the owner of the state that the consumer needs. Messages of one key
	// are handled one at a time, in order.
	Key string
	// Type says what the message is, for example TypeChange. ce_type on the wire.
	Type string
	// Subject is the URL that the message is about, if any. ce_subject on the wire.
	Subject string
	// Time is when what the message reports happened. ce_time on the wire.
	Time time.Time
	// Header holds further attributes, by lower-case name.
	Header map[string]string
	// Body is the payload: JSON on public topics.
	Body []byte
	// Position names the place of a received message in its log, unique over the life
	// of the store ("STORE/topic/lane/offset"). A transport sets it; wakes and posted
	// messages have none.
	Position string
}

// Names of the headers that carry a Message's attributes.
const (
	headerSpec    = "ce_specversion"
	headerID      = "ce_id"
	headerType    = "ce_type"
	headerSource  = "ce_source"
	headerSubject = "ce_subject"
	headerTime    = "ce_time"
	headerContent = "content-type"
	// HeaderKey carries Message.Key from a publisher to its transport, which may
	// use the record key instead of a header.
	HeaderKey = "vokter_key"
	// HeaderTrace is the W3C trace context, copied from a message to those it causes.
	HeaderTrace = "traceparent"
)

// Source is the ce_source of every message that this module produces.
const Source = "https://github.com/vokter/vokter"

// Metadata returns the headers that carry m, without its body.
func (m Message) Metadata() map[string]string {
	h := make(map[string]string, len(m.Header)+7)
	maps.Copy(h, m.Header)
	h[headerSpec] = "1.0"
	h[headerID] = m.ID
	h[headerType] = m.Type
	h[headerSource] = Source
	h[HeaderKey] = m.Key
	if m.Subject != "" {
		h[headerSubject] = m.Subject
	}
	if !m.Time.IsZero() {
		h[headerTime] = m.Time.UTC().Format(time.RFC3339Nano)
	}
	return h
}

// FromMetadata is the inverse of Metadata. It fails with a permanent error where a
// header that a message needs is missing or malformed.
func FromMetadata(meta map[string]string, body []byte) (Message, error) {
	m := Message{
		ID: meta[headerID], Key: meta[HeaderKey], Type: meta[headerType],
		Subject: meta[headerSubject], Body: body,
	}
	if m.ID == "" || m.Type == "" {
		return Message{}, Permanent(fmt.Errorf("message without %s or %s", headerID, headerType))
	}
	if at := meta[headerTime]; at != "" {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return Message{}, Permanent(fmt.Errorf("message %s: %s: %w", m.ID, headerTime, err))
		}
		m.Time = t
	}
	for k, v := range meta {
		switch k {
		case headerSpec, headerID, headerType, headerSource, headerSubject, headerTime, HeaderKey:
			continue
		}
		if m.Header == nil {
			m.Header = make(map[string]string)
		}
		m.Header[k] = v
	}
	return m, nil
}
