package kafka

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// headerUUID is the header with the UUID of a message that was published with Watermill's
// interface, named as in watermill-kafka.
const headerUUID = "_watermill_message_uuid"

// output is a message to be published to a lane.
type output struct {
	topic   string // without the prefix
	lane    int    // or admin.AnyPartition
	key     string
	payload []byte
	headers iter.Seq2[string, string] // the key among them
}

// outputOfWatermill returns a message of Watermill as an output to the lane of its key, or of its UUID.
func outputOfWatermill(topic, uuid string, meta message.Metadata, payload []byte, lanes int) output {
	key, headers := meta[flow.HeaderKey], make(message.Metadata, len(meta)+1)
	maps.Copy(headers, meta)
	if uuid != meta["ce_id"] {
		headers[headerUUID] = uuid
	}
	return output{topic: topic, lane: client.PartitionOf(cmp.Or(key, uuid), lanes), key: key, payload: payload, headers: maps.All(headers)}
}

// outputs makes outputs of messages.
type outputs struct{ t *Transport }

var _ engine.Outputs[output] = outputs{}

func (p outputs) Lanes() int { return p.t.lanes }

func (p outputs) Output(m flow.Message) output {
	if topic := p.t.declaredTopic(m.Topic); topic.IsOutlet() && !topic.Table && m.Key != "" {
		return p.OutputTo(m, admin.AnyPartition)
	}
	return p.OutputTo(m, client.PartitionOf(cmp.Or(m.Key, m.ID), p.t.lanes))
}

func (p outputs) OutputTo(m flow.Message, lane int) output {
	m.Header, m.Body = maps.Clone(m.Header), m.Encoded()
	m = m.ForOthers(p.t.source())
	return output{topic: m.Topic, lane: lane, key: m.Key, payload: p.t.schemaIDs.Frame(m.Type, m.Body), headers: m.Attributes()}
}

// Logged reports whether topic has a log: other programs may read it.
func (p outputs) Logged(topic string) bool { return p.t.declaredTopic(topic).HasLog() }

// Fits returns a permanent error if an output or a value is larger than a record may be: it would
// make every transaction of the lane fail.
func (outputs) Fits(e *engine.Effects[output]) error {
	for _, o := range e.Out {
		if n := o.size(); n > admin.MaxRecord || n > client.MaxMessage && o.compressedSize() > client.MaxMessage-client.MaxMessage/8 {
			return failure.Permanent(fmt.Errorf("a message for topic %s takes %d bytes, and a record at most %d, and %d when it is compressed", o.topic, n, admin.MaxRecord, client.MaxMessage))
		}
	}
	for w := range e.Writes.All() {
		if n := len(w.Value) + len(w.Place.Key) + len(w.Name) + recordOverhead; n > client.MaxMessage {
			return failure.Permanent(fmt.Errorf("the value %q of %q takes %d bytes, and a record at most %d", w.Name, w.Place.Key, n, client.MaxMessage))
		}
	}
	return nil
}

// recordOverhead is how many bytes a record may take in addition to its key, value and headers.
const recordOverhead = 512

// size is how many bytes o takes in a topic at most, without compression.
func (o output) size() int {
	n := recordOverhead + len(o.key) + len(o.payload)
	for name, value := range o.headers {
		n += len(name) + len(value) + 8
	}
	return n
}

// compressedSize is about how many bytes o takes when it is compressed.
func (o output) compressedSize() int {
	return o.size() - len(o.payload) + len(zstdEncoder().EncodeAll(o.payload, nil))
}

// zstdEncoder compresses as the producers do.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
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
	for name, value := range o.headers {
		if name != flow.HeaderKey {
			r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
		}
	}
	if o.payload != nil {
		r.Value = sarama.ByteEncoder(o.payload)
	}
	return r
}

// decodeRecord returns the UUID, the metadata and the body of a record for a handler. The UUID of a record of another
// program is its ce_id. The ID of a schema is no part of the body.
func decodeRecord(r *sarama.ConsumerMessage) (uuid string, meta message.Metadata, body []byte) {
	meta = make(message.Metadata, len(r.Headers)+1)
	for _, h := range r.Headers {
		meta[string(h.Key)] = string(h.Value)
	}
	uuid = cmp.Or(meta[headerUUID], meta["ce_id"])
	delete(meta, headerUUID)
	if len(r.Key) > 0 {
		meta[flow.HeaderKey] = string(r.Key)
	} else {
		delete(meta, flow.HeaderKey)
	}
	body = r.Value
	if slices.Contains(flow.PublicTypes, meta["ce_type"]) {
		body = cluster.Unframe(body)
	}
	return uuid, meta, body
}

// markerOwner returns the owner of the marker r; empty if r is not a marker.
func markerOwner(r *sarama.ConsumerMessage) string {
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

// newMarker returns a marker of owner.
func newMarker(topic string, lane int, owner string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Partition: int32(lane), Headers: []sarama.RecordHeader{
		{Key: []byte(changelog.HeaderMarker), Value: []byte(owner)},
	}}
}
