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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Message is a message of a topic. On the wire its fields are headers with the names of the
// CloudEvents binding for Kafka (ce_id, ce_type, ...); see Metadata.
type Message struct {
	// ID identifies the message. Except for commands, it is derived from the content or cause of
	// the message, so that handling a message twice gives the same IDs. On the wire it is ce_id.
	ID string
	// Topic is one of the Topic constants, or another topic that the program uses. It is not on the
	// wire.
	Topic string
	// Key selects the state that the consumer reads and writes. Messages with one key are handled
	// one at a time, in order.
	Key string
	// Type is the type of the body, for example TypeChange. On the wire it is ce_type.
	Type string
	// Source is the sender of the message. Empty means SourceVokter, or in a topic that other programs read the
	// installation, if it has a name. On the wire it is ce_source.
	Source string
	// Subject is the URL that the message is about, if any. On the wire it is ce_subject.
	Subject string
	// Time is when the event that the message reports happened. On the wire it is ce_time.
	Time time.Time
	// Trace is the W3C trace context, which messages that follow from this one share. On the wire it is
	// HeaderTrace.
	Trace string
	// Header has further headers by lower-case name.
	Header map[string]string
	// Body is the payload: JSON on public topics. See Encoded.
	Body []byte
	// Position is the place of a received message in its log, "STORE/topic/lane/offset". It is never
	// used twice in a store. The transport sets it; wakes and posted messages have none.
	Position string

	// decoded is the message in its Go type, for consumers in the same process; nil if it is not known.
	decoded any
}

// Encoded returns the payload of m. It makes that of a Request.Message and of a Change.Message, which have no Body.
func (m Message) Encoded() []byte {
	if m.Body == nil {
		switch m.decoded.(type) {
		case Request, Change:
			return encode(m.decoded)
		}
	}
	return m.Body
}

// WithBody returns m with its payload as Body, as it is for those outside of the process.
func (m Message) WithBody() Message {
	m.Body = m.Encoded()
	if _, ok := m.decoded.(Change); ok {
		m.decoded = nil
	}
	return m
}

// headerEncoder is a decoded message that is encoded into a header when the message leaves the process. Where
// Header has that name, the header wins.
type headerEncoder interface{ encodeHeader() (name, value string) }

// memoryHolder is a decoded message that takes memory beside the Body.
type memoryHolder interface{ extraMemory() int }

// Held returns how many bytes of memory m takes beside its attributes, its headers and its Body.
func (m Message) Held() int {
	if h, ok := m.decoded.(memoryHolder); ok {
		return h.extraMemory()
	}
	return 0
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
	headerSchema  = "ce_dataschema"
	// HeaderKey carries Message.Key to the transport, which may send the key of the record instead.
	HeaderKey = "vokter_key"
	// HeaderTrace carries Message.Trace. In Message.Header it has no effect.
	HeaderTrace = "traceparent"
)

// ownTypes is what the types of this module begin with.
const ownTypes = "vokter."

// schemas is what the $id of each JSON Schema begins with. The name of its file follows, which is the ce_type.
const schemas = "https://github.com/vokter/vokter/blob/main/docs/schemas/"

// PublicTypes are the types whose body is JSON that a JSON Schema in docs/schemas describes.
var PublicTypes = []string{
	TypeChange, TypeOutage, TypeEnded, TypeCurrent, TypeAddressed, TypeWithdraw, TypeDeadLetter, TypeReplay, TypeHealth,
	TypeSubscribe, TypeCancel, TypePause, TypeResume, TypeNotification,
}

// ForOthers returns m as other programs read it: with source, unless it has one, and with the name of its JSON Schema.
// It alters the Header of m.
func (m Message) ForOthers(source string) Message {
	m.Source = cmp.Or(m.Source, source)
	if m.Header != nil && slices.Contains(PublicTypes, m.Type) {
		m.Header[headerSchema] = schemas + m.Type + ".json"
	}
	return m
}

// CheckSource returns an error if source cannot be the Source of a message.
func CheckSource(source string) error {
	u, err := url.Parse(source)
	if err != nil || source != "" && u.Scheme == "" || attributeText(source) != source || strings.ContainsAny(source, " \t") || u.User != nil {
		return fmt.Errorf("%q is not a URI that names this installation; write one such as https://vokter.example.com or urn:acme:vokter", source)
	}
	return nil
}

// SourceVokter is the ce_source of the messages of this module, unless the installation has a name; sourceUnknown
// stands for a missing ce_source.
const (
	SourceVokter  = "https://github.com/vokter/vokter"
	sourceUnknown = "unknown"
)

// Metadata returns the headers of m on the wire.
func (m Message) Metadata() map[string]string {
	h := make(map[string]string, len(m.Header)+8)
	maps.Insert(h, m.Attributes())
	return h
}

// Attributes yields the headers of m on the wire, each name once, in no particular order.
func (m Message) Attributes() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for k, v := range m.Header {
			if !isAttribute(k) && !yield(k, v) {
				return
			}
		}
		if d, ok := m.decoded.(headerEncoder); ok {
			name, value := d.encodeHeader()
			if _, replaced := m.Header[name]; !replaced && !yield(name, value) {
				return
			}
		}
		_ = yield(headerSpec, "1.0") && yield(headerID, m.ID) && yield(headerType, m.Type) &&
			yield(headerSource, cmp.Or(m.Source, SourceVokter)) && yield(HeaderKey, m.Key) &&
			(m.Subject == "" || yield(headerSubject, m.Subject)) && (m.Trace == "" || yield(HeaderTrace, m.Trace)) &&
			(m.Time.IsZero() || yield(headerTime, m.Time.UTC().Format(time.RFC3339Nano)))
	}
}

// encode returns v, whose fields can all be encoded, as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("flow: encoding a %T: %v", v, err))
	}
	return b
}

// decode returns the body of m, which errors call what. Its error is permanent.
func decode[T any](m Message, what string) (v T, err error) {
	if err = json.Unmarshal(m.Body, &v); err != nil {
		err = failure.Permanent(fmt.Errorf("%s %s: %w", what, m.ID, err))
	}
	return v, err
}

// isAttribute reports whether a header carries an attribute that has a field of its own.
func isAttribute(name string) bool {
	switch name {
	case headerSpec, headerID, headerType, headerSource, headerSubject, headerTime, HeaderKey, HeaderTrace:
		return true
	}
	return false
}

// FromMetadata is the inverse of Metadata. Where a required header is missing or malformed, it
// returns a permanent error together with the fields that could be read.
func FromMetadata(meta map[string]string, body []byte) (Message, error) {
	m := Message{
		ID: meta[headerID], Key: meta[HeaderKey], Type: meta[headerType],
		Subject: meta[headerSubject], Trace: meta[HeaderTrace], Body: body,
	}
	if s := meta[headerSource]; s != SourceVokter {
		m.Source = cmp.Or(s, sourceUnknown)
	}
	for k, v := range meta {
		if isAttribute(k) {
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

// Received returns the message that a transport read from topic at position. A message without an
// ID gets uuid, or else position, as its ID. Errors are those of FromMetadata.
func Received(topic, uuid, position string, meta map[string]string, body []byte) (Message, error) {
	if topic == TopicIngest {
		return FromIngest(meta, body, position)
	}
	m, err := FromMetadata(meta, body)
	m.ID = cmp.Or(m.ID, uuid, position) // other messages derive their IDs from it
	m.Topic, m.Position = topic, position
	return m, err
}

// UnknownType returns the error of the consumer who, which does not know the type of m. The error
// is permanent, and m becomes a dead letter, if another program may have written m: OthersWrite
// says so of its topic, or the type is none of this module. Otherwise a newer version of this module
// wrote m, and the error is failure.Broken, so that the newer version can handle m.
func (m Message) UnknownType(who string) error {
	err := fmt.Errorf("%s does not know messages of type %q (%s)", who, Clipped(m.Type, maxQuoted), Clipped(m.ID, maxQuoted))
	if OthersWrite(m.Topic) || !strings.HasPrefix(m.Type, ownTypes) {
		return failure.Permanent(fmt.Errorf("%w from %q", err, Clipped(cmp.Or(m.Source, SourceVokter), maxQuoted)))
	}
	return failure.Broken(err)
}

// CheckTime returns an error for a time that RFC 3339 cannot express in UTC: one whose year is not
// between 0 and 9999.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the time is in the year %d in UTC, which is not between 0 and 9999", year)
	}
	return nil
}

// maxQuoted is how much of a header errors quote, in bytes.
const maxQuoted = 200

// Clipped returns s, or its first most bytes and "…" if it is longer. Use it for text of others
// in logs and errors.
func Clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// TypeNotification is the type of the CloudEvents that sinks send, beside TypeChange. No topic of the pipeline has it.
// Its body is a pipeline.Notification.
const TypeNotification = "vokter.notification.v1"

// CloudEvent returns n as a CloudEvent for receivers outside the pipeline. The Body is the
// documented JSON. The Attributes, except HeaderKey, are the headers of the CloudEvents bindings.
// The Type is TypeChange for a change record and TypeNotification for everything else, of which Notification.Type says
// the kind; the header ce_dataschema names the JSON Schema of the Body. Topic and Key are empty. A notification without
// an ID gives a permanent error.
func CloudEvent(n pipeline.Notification) (Message, error) {
	if n.ID == "" {
		return Message{}, failure.Permanent(errors.New("the notification has no ID"))
	}
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	typ, body, err := TypeChange, []byte(n.Record), error(nil)
	if n.Type != pipeline.NotificationTypeChange {
		typ = TypeNotification
		body, err = json.Marshal(n)
	}
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	m := Message{
		ID: n.ID, Type: typ, Subject: attributeText(n.URL), Time: n.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: body,
	}
	return m.ForOthers(n.Source), nil
}

// attributeText returns s without what an attribute of a CloudEvent must not contain: control
// characters, noncharacters and invalid UTF-8.
func attributeText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

// TraceParent returns the W3C trace context of a trace that begins with the message id. Its IDs
// are derived from id, and it is sampled.
func TraceParent(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// DeriveID hashes parts into an ID of 128 bits, 26 characters of [0-9A-V]. Equal lists of parts
// give equal IDs. The lists ("ab", "c") and ("a", "bc") give different IDs.
func DeriveID(parts ...string) string {
	b := make([]byte, 0, 256)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return idEncoding.EncodeToString(sum[:16])
}

// ChangeID returns the ID of the change that made version n of a document. Lineage is the store
// that it was made in: two copies of a store make different changes under the same number.
func ChangeID(document, incarnation, lineage string, n uint64) string {
	return DeriveID("change", document, incarnation, lineage, strconv.FormatUint(n, 10))
}

// OutageID returns the ID of the notification that tells the client of o at a receiver, in the name of one of its
// subscriptions. Status is that of the notification.
func OutageID(status string, o Outage, subscriptionIncarnation, receiver string) string {
	return DeriveID(status, o.Page, o.Incarnation, o.Lineage, strconv.FormatUint(o.Stamp, 10), subscriptionIncarnation, receiver)
}

// Lineage returns the store of a Message.Position.
func Lineage(position string) string {
	store, _, _ := strings.Cut(position, "/")
	return store
}

// NotificationID returns the ID of the notification of a change for one subscription and receiver.
func NotificationID(change, subscriptionIncarnation, receiver string) string {
	return DeriveID("notification", change, subscriptionIncarnation, receiver)
}

// DocumentOf returns the ID of the document that s watches in page.
func DocumentOf(page string, s pipeline.Subscription) string {
	return DocumentID(page, s.WithDefaults().View)
}

// DocumentID returns the ID of the document that v selects in page.
func DocumentID(page string, v pipeline.View) string {
	if v.IsZero() {
		return DeriveID("document", page)
	}
	if v.Confirm == 1 {
		v.Confirm = 0 // which means the same
	}
	view, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: it has texts, numbers and lists only
	}
	return DeriveID("document", page, string(view))
}
