package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Sweep asks each lane to look for the pages that Receiver means something to, and to tell
// them what became of it. One is published into every lane, see EmitAll.
type Sweep struct {
	// Event is the ID of the health event that says so, Time when it happened.
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	// Receiver is a Receiver.ID.
	Receiver string `json:"receiver"`
	// Resume begins anew what ended with the receiver, which answers again; otherwise what
	// has no other receiver ends for Reason.
	Resume bool   `json:"resume,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Message returns s as a message on TopicSweeps, without a key.
func (s Sweep) Message() Message {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("pipeline: sweep: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("sweep", s.Event), Topic: TopicSweeps, Type: TypeSweep, Time: s.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// SweepFrom is the inverse of Sweep.Message.
func SweepFrom(m Message) (Sweep, error) {
	var s Sweep
	if err := json.Unmarshal(m.Body, &s); err != nil {
		return s, pipeline.Permanent(fmt.Errorf("sweep %s: %w", m.ID, err))
	}
	return s, nil
}
