package watermill

import (
	"encoding/json"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// eventType is the metadata with the CloudEvents type.
const eventType = "ce_type"

// Marshaler is the marshaler for Watermill's package components/cqrs, with which a handler of events takes a
// *pipeline.Notification, a *flow.Change or a *pipeline.Health. The name of an event is its CloudEvents type, such as
// vokter.notification.v1, so that a processor needs AckOnUnknownEvent where its topic has other types too.
type Marshaler struct{}

// Marshal returns the message for v, a pipeline.Notification or a pointer to one. Its metadata are those of a CloudEvent.
// Vokter alone publishes the other types: they fail.
func (Marshaler) Marshal(v any) (*message.Message, error) {
	n, ok := v.(pipeline.Notification)
	if p, isPointer := v.(*pipeline.Notification); isPointer {
		n, ok = *p, true
	}
	if !ok {
		return nil, failure.Permanent(fmt.Errorf("a %T cannot be published; only a pipeline.Notification can", v))
	}
	e, err := flow.CloudEvent(n)
	if err != nil {
		return nil, err
	}
	m := message.NewMessage(n.ID, e.Body)
	m.Metadata = e.Metadata()
	delete(m.Metadata, flow.HeaderKey) // of a topic of Vokter's
	return m, nil
}

// Unmarshal reads the payload of m, which is JSON, into v.
func (Marshaler) Unmarshal(m *message.Message, v any) error {
	if err := json.Unmarshal(m.Payload, v); err != nil {
		return fmt.Errorf("a message of type %q is no %T: %w", m.Metadata[eventType], v, err)
	}
	return nil
}

// Name returns the CloudEvents type of v: a pipeline.Notification, a flow.Change, a pipeline.Health, or a pointer to one.
// Of any other value it is the name of its Go type.
func (Marshaler) Name(v any) string {
	switch v.(type) {
	case pipeline.Notification, *pipeline.Notification:
		return flow.TypeNotification
	case flow.Change, *flow.Change:
		return flow.TypeChange
	case pipeline.Health, *pipeline.Health:
		return flow.TypeHealth
	}
	return fmt.Sprintf("%T", v)
}

// NameFromMessage returns the CloudEvents type of m.
func (Marshaler) NameFromMessage(m *message.Message) string { return m.Metadata[eventType] }
