package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Decision is what index decided about a command that somebody may wait for, in whichever
// process: TypeSubscribe, TypeCancel or TypeResume.
type Decision struct {
	// Command is the ID of the command.
	Command string `json:"command"`
	// Code is 0 where the command was carried out, otherwise why it was refused, as in
	// Health.Code; Reason says it in words for the user.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Message returns d as a message on TopicDecisions about page, decided at the time at.
func (d Decision) Message(page string, at time.Time) Message {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("pipeline: decision: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("decision", d.Command), Topic: TopicDecisions, Key: page, Type: TypeDecision, Subject: page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// DecisionFrom is the inverse of Decision.Message.
func DecisionFrom(m Message) (Decision, error) {
	var d Decision
	if err := json.Unmarshal(m.Body, &d); err != nil {
		return d, pipeline.Permanent(fmt.Errorf("decision %s: %w", m.ID, err))
	}
	return d, nil
}
