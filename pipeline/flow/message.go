package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Message is what travels through a topic. On the wire its attributes are headers
// named as the CloudEvents Kafka protocol binding names them (ce_id, ce_type, ...);
// see Metadata.
type Message struct {
	// ID identifies the message; but for commands it is derived from its content or cause,
	// so that handling a message twice yields the same IDs. ce_id on the wire.
	ID string
	// Topic is one of the Topic constants or a topic of the user's. It is not on the wire.
	Topic string
	// Key names the owner of the state that the consumer needs. Messages of one key
	// are handled one at a time, in order.
	Key string
	// Type says what the message is, for example TypeChange. ce_type on the wire.
	Type string
	// Source is who sent the message; empty means this module, whose name is the constant
	// SourceVokter. ce_source on the wire.
	Source string
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

	// value is what the message says where that is known without decoding it: for
	// receivers in the same process.
	value any
}

// deferred is a value that is encoded into a header when the message leaves the process,
// unless Header has one of that name.
type deferred interface{ attribute() (name, value string) }

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

// SourceVokter is the ce_source of every message that this module produces; sourceUnknown is that
// of messages that name none.
const (
	SourceVokter  = "https://github.com/vokter/vokter"
	sourceUnknown = "unknown"
)

// Metadata returns the headers that carry m, without its body.
func (m Message) Metadata() map[string]string {
	h := make(map[string]string, len(m.Header)+7)
	maps.Insert(h, m.Attributes())
	return h
}

// Attributes yields the headers that carry m, without its body, each name once. They may
// be more than Header, and their order means nothing.
func (m Message) Attributes() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for k, v := range m.Header {
			if !attribute(k) && !yield(k, v) {
				return
			}
		}
		if d, ok := m.value.(deferred); ok {
			name, value := d.attribute()
			if _, replaced := m.Header[name]; !replaced && !yield(name, value) {
				return
			}
		}
		_ = yield(headerSpec, "1.0") && yield(headerID, m.ID) && yield(headerType, m.Type) &&
			yield(headerSource, cmp.Or(m.Source, SourceVokter)) && yield(HeaderKey, m.Key) &&
			(m.Subject == "" || yield(headerSubject, m.Subject)) &&
			(m.Time.IsZero() || yield(headerTime, m.Time.UTC().Format(time.RFC3339Nano)))
	}
}

// attribute reports whether a header carries an attribute that has a field of its own.
func attribute(name string) bool {
	switch name {
	case headerSpec, headerID, headerType, headerSource, headerSubject, headerTime, HeaderKey:
		return true
	}
	return false
}

// FromMetadata is the inverse of Metadata. It fails with a permanent error where a
// header that a message needs is missing or malformed; with that comes what is known of it.
func FromMetadata(meta map[string]string, body []byte) (Message, error) {
	m := Message{
		ID: meta[headerID], Key: meta[HeaderKey], Type: meta[headerType],
		Subject: meta[headerSubject], Body: body,
	}
	if s := meta[headerSource]; s != SourceVokter {
		m.Source = cmp.Or(s, sourceUnknown)
	}
	for k, v := range meta {
		if attribute(k) {
			continue
		}
		if m.Header == nil {
			m.Header = make(map[string]string)
		}
		m.Header[k] = v
	}
	if m.ID == "" || m.Type == "" {
		return m, failure.Permanent(fmt.Errorf("message without %s or %s", headerID, headerType))
	}
	if at := meta[headerTime]; at != "" {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return m, failure.Permanent(fmt.Errorf("message %s: %s: %w", Clipped(m.ID, maxQuoted), headerTime, err))
		}
		if err := CheckTime(t); err != nil {
			return m, failure.Permanent(fmt.Errorf("message %s: %s: %w", Clipped(m.ID, maxQuoted), headerTime, err))
		}
		m.Time = t
	}
	return m, nil
}

// Received returns the message that was read from topic, by its headers: uuid is the ID of one
// that has none of its own, position its place in the log. It fails as FromMetadata does.
func Received(topic, uuid, position string, meta map[string]string, body []byte) (Message, error) {
	if topic == TopicIngest {
		return FromIngest(meta, body, position)
	}
	m, err := FromMetadata(meta, body)
	m.ID = cmp.Or(m.ID, uuid, position) // messages that follow from it have IDs of their own all the same
	m.Topic, m.Position = topic, position
	return m, err
}

// UnknownType returns the error of a reader that does not know the type of m, named by who.
// It is Permanent on a topic that others may write, and where the message itself names another
// sender: it goes to the dead letters. It is Broken on all other topics, where only a newer
// version of this module can have written it: that version can read it.
func (m Message) UnknownType(who string) error {
	err := fmt.Errorf("%s does not know messages of type %q (%s)", who, Clipped(m.Type, maxQuoted), Clipped(m.ID, maxQuoted))
	switch {
	case m.Source != "":
		return failure.Permanent(fmt.Errorf("%w from %q", err, Clipped(m.Source, maxQuoted)))
	case OthersWrite(m.Topic):
		return failure.Permanent(err)
	}
	return failure.Broken(err)
}

// CheckTime refuses a time that a message names and that RFC 3339 cannot write in UTC, such as
// one at the end of the year 9999 in America.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the time is in the year %d in UTC, which is not between 0 and 9999", year)
	}
	return nil
}

// maxQuoted is how much of an attribute of a message errors quote, in bytes.
const maxQuoted = 200

// Clipped returns s, or its first most bytes and a mark: for logs and errors that quote what
// anybody may have written.
func Clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// CloudEvent returns n as a CloudEvent for receivers outside the pipeline. Its Body is the documented
// JSON. Its Attributes, except HeaderKey, are what the CloudEvents bindings for Kafka and others
// put into headers. Its Type is Notification.Type as "vokter.TYPE.v1", such as
// TypeNotification. Its Topic and Key are empty. An n that cannot be an event gives a permanent
// error.
func CloudEvent(n pipeline.Notification) (Message, error) {
	if n.ID == "" {
		return Message{}, failure.Permanent(errors.New("the notification has no ID"))
	}
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	return Message{
		ID: n.ID, Type: "vokter." + cmp.Or(n.Type, pipeline.NotificationType) + ".v1", Subject: attributeText(n.URL), Time: n.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: body,
	}, nil
}

// attributeText returns s without what the attributes of a CloudEvent must not have:
// controls, noncharacters, and what is no UTF-8.
func attributeText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

// TraceParent returns the W3C trace context of a trace that begins with the message
// id: version 00, sampled, its IDs derived from id.
func TraceParent(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// DeriveID hashes parts into an ID of 26 characters of [0-9A-V] (128 bits). Equal
// parts give equal IDs, and no two lists of parts are confused by where one ends.
func DeriveID(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return idEncoding.EncodeToString(h.Sum(nil)[:16])
}

// ChangeID is the ID of the change that made version n of a document. Lineage is the store
// in which it did: a copy of a store that goes on makes other changes under the same numbers.
func ChangeID(document, incarnation, lineage string, n uint64) string {
	return DeriveID("change", document, incarnation, lineage, strconv.FormatUint(n, 10))
}

// TimeoutID is the ID of the notification that tells a subscription at one receiver that
// this life of its page was given up. A life has one such end.
func TimeoutID(page, incarnation, lineage, subscriptionIncarnation, receiver string) string {
	return DeriveID("timeout", page, incarnation, lineage, subscriptionIncarnation, receiver)
}

// Lineage returns the part of a Message.Position that names its store.
func Lineage(position string) string {
	store, _, _ := strings.Cut(position, "/")
	return store
}

// NotificationID is the ID of what a change tells one subscription at one receiver.
func NotificationID(change, subscriptionIncarnation, receiver string) string {
	return DeriveID("notification", change, subscriptionIncarnation, receiver)
}

// DocumentID names the document that v makes of page, for state and IDs.
func DocumentID(page string, v pipeline.View) string {
	parts := []string{"document", page}
	list := func(name string, ss []pipeline.Selector) {
		for _, s := range ss {
			parts = append(parts, name, s.CSS, s.From, s.To)
		}
	}
	list("select", v.Select)
	list("remove", v.Remove)
	for _, re := range v.Ignore {
		parts = append(parts, "ignore", re)
	}
	if v.Confirm > 1 {
		parts = append(parts, "confirm", fmt.Sprint(v.Confirm))
	}
	return DeriveID(parts...)
}
