package kafka

import (
	"bytes"
	"fmt"
	"maps"
	"sync"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// headerUUID is the header with the UUID of a message that was published with Watermill's
// interface, named as in watermill-kafka.
const headerUUID = "_watermill_message_uuid"

// output is a message to be published to a lane.
type output struct {
	topic string // without the prefix
	lane  int
	key   string
	// Either message is set, or uuid, meta and payload of a Watermill message.
	message *flow.Message
	uuid    string
	meta    message.Metadata
	payload []byte
}

// outputOf returns m as an output to the lane of its key, or of its ID if it has no key.
func outputOf(m flow.Message, lanes int) output {
	m.Header, m.Body = maps.Clone(m.Header), m.Encoded()
	key := m.Key
	if key == "" {
		key = m.ID
	}
	return output{topic: m.Topic, lane: client.PartitionOf(key, lanes), key: m.Key, message: &m}
}

// outputs makes outputs of messages.
type outputs struct{ t *Transport }

var _ engine.Outputs[output] = outputs{}

func (p outputs) Lanes() int { return p.t.lanes }

func (p outputs) Output(m flow.Message) output { return outputOf(m, p.t.lanes) }

func (p outputs) OutputTo(m flow.Message, lane int) output {
	o := outputOf(m, p.t.lanes)
	o.lane = lane
	return o
}

// Fits returns a permanent error if an output or a value is larger than a record may be: it would
// make every transaction of the lane fail.
func (outputs) Fits(e *engine.Effects[output]) error {
	for _, o := range e.Out {
		if n := o.size(); n > admin.MaxRecord || n > client.MaxMessage && o.packed() > client.MaxMessage-client.MaxMessage/8 {
			return failure.Permanent(fmt.Errorf("a message for topic %s takes %d bytes, and a record at most %d, and %d when it is compressed", o.topic, n, admin.MaxRecord, client.MaxMessage))
		}
	}
	for p, names := range e.Writes.All() {
		for name, value := range names {
			if n := len(value) + len(p.Key) + len(name) + recordOverhead; n > client.MaxMessage {
				return failure.Permanent(fmt.Errorf("the value %q of %q takes %d bytes, and a record at most %d", name, p.Key, n, client.MaxMessage))
			}
		}
	}
	return nil
}

// outputOfWatermill is outputOf for a message that was published with Watermill's interface.
func outputOfWatermill(topic string, m *message.Message, lanes int) output {
	o := output{topic: topic, key: m.Metadata[flow.HeaderKey], uuid: m.UUID, meta: maps.Clone(m.Metadata), payload: m.Payload}
	key := o.key
	if key == "" {
		key = m.UUID
	}
	o.lane = client.PartitionOf(key, lanes)
	return o
}

// recordOverhead is how many bytes a record may take in addition to its key, value and headers.
const recordOverhead = 512

// size is how many bytes o takes in a topic at most, without compression.
func (o output) size() int {
	n := recordOverhead + len(o.key) + len(o.uuid)
	if o.message != nil {
		n += len(o.message.Body)
		for name, value := range o.message.Attributes() {
			n += len(name) + len(value) + 8
		}
		return n
	}
	n += len(o.payload)
	for name, value := range o.meta {
		n += len(name) + len(value) + 8
	}
	return n
}

// packed is about how many bytes o takes when it is compressed.
func (o output) packed() int {
	body := o.payload
	if o.message != nil {
		body = o.message.Body
	}
	return o.size() - len(body) + len(packer().EncodeAll(body, nil))
}

// packer compresses as the producers do.
var packer = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprintf("kafka: zstd: %v", err)) // the options are constant
	}
	return e
})

// record returns o as a record.
func (o output) record(prefix string) *sarama.ProducerMessage {
	r := &sarama.ProducerMessage{Topic: prefix + o.topic, Partition: int32(o.lane)}
	if o.key != "" {
		r.Key = sarama.StringEncoder(o.key)
	}
	add := func(name, value string) {
		if name != flow.HeaderKey {
			r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
		}
	}
	if o.message != nil {
		for name, value := range o.message.Attributes() {
			add(name, value)
		}
		if o.message.Body != nil {
			r.Value = sarama.ByteEncoder(o.message.Body)
		}
		return r
	}
	for name, value := range o.meta {
		add(name, value)
	}
	if o.uuid != o.meta["ce_id"] {
		add(headerUUID, o.uuid)
	}
	if o.payload != nil {
		r.Value = sarama.ByteEncoder(o.payload)
	}
	return r
}

// received returns the UUID and the metadata of a record for a handler.
func received(r *sarama.ConsumerMessage) (uuid string, meta message.Metadata) {
	meta = make(message.Metadata, len(r.Headers)+1)
	for _, h := range r.Headers {
		meta[string(h.Key)] = string(h.Value)
	}
	uuid = uuidOf(r)
	delete(meta, headerUUID)
	if len(r.Key) > 0 {
		meta[flow.HeaderKey] = string(r.Key)
	} else {
		delete(meta, flow.HeaderKey)
	}
	return uuid, meta
}

// uuidOf returns the UUID of the Watermill message in r; for records of other programs its ce_id.
func uuidOf(r *sarama.ConsumerMessage) (uuid string) {
	for _, h := range r.Headers {
		switch string(h.Key) {
		case headerUUID:
			return string(h.Value)
		case "ce_id":
			uuid = string(h.Value)
		}
	}
	return uuid
}

// forwarded returns r as an output to lane.
func forwarded(r *sarama.ConsumerMessage, topic string, lane int) output {
	o := output{topic: topic, lane: lane, key: string(r.Key), payload: r.Value}
	o.uuid, o.meta = received(r)
	if o.uuid == "" {
		o.uuid = o.meta["ce_id"]
	}
	return o
}

// markerOf returns the owner of the marker r; empty if r is not a marker.
func markerOf(r *sarama.ConsumerMessage) string {
	if r.Key != nil || r.Value != nil {
		return ""
	}
	for _, h := range r.Headers {
		if bytes.Equal(h.Key, []byte(changelog.HeaderMarker)) {
			return string(h.Value)
		}
	}
	return ""
}

// marker returns a marker of owner.
func marker(topic string, lane int, owner string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Partition: int32(lane), Headers: []sarama.RecordHeader{
		{Key: []byte(changelog.HeaderMarker), Value: []byte(owner)},
	}}
}
