package flow

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/vokter/vokter/pipeline"
)

// HealthKey is the key of events about the process.
const HealthKey = "process"

// HealthMessage returns h as a message on TopicHealth, whose key is the page, the receiver or
// HealthKey.
func HealthMessage(h pipeline.Health) Message {
	h.Time, h.Since = h.Time.Round(0).UTC(), h.Since.Round(0).UTC()
	b, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("pipeline: health: %v", err)) // every field is encodable
	}
	key := HealthKey
	switch {
	case h.Receiver != nil:
		key = h.Receiver.ID()
	case h.URL != "":
		key = h.URL
	}
	return Message{ID: h.ID, Topic: TopicHealth, Key: key, Type: TypeHealth, Subject: h.URL, Time: h.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// HealthFrom is the inverse of Health.Message.
func HealthFrom(m Message) (pipeline.Health, error) {
	var h pipeline.Health
	if err := json.Unmarshal(m.Body, &h); err != nil {
		return h, pipeline.Permanent(fmt.Errorf("health event %s: %w", m.ID, err))
	}
	return h, nil
}

// HealthID is the ID of an event: about what (the incarnation of a page, a receiver),
// and the number of the check, attempt or change of state that brought it.
func HealthID(event pipeline.HealthEvent, about string, n uint64) string {
	return DeriveID("health", string(event), about, strconv.FormatUint(n, 10))
}
