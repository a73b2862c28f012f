package flow

import (
	"encoding/json"
	"fmt"

	"github.com/vokter/vokter/pipeline"
)

// ChangeMessage returns c as a message on TopicChanges.
func ChangeMessage(c pipeline.Change) (Message, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return Message{}, pipeline.Permanent(fmt.Errorf("change %s: %w", c.ID, err))
	}
	return Message{ID: c.ID, Topic: TopicChanges, Key: c.Page, Type: TypeChange, Subject: c.Page, Time: c.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// ChangeFrom returns the change that m, a message of TypeChange, carries. Its error is permanent.
func ChangeFrom(m Message) (c pipeline.Change, err error) {
	if m.Type != TypeChange {
		return c, pipeline.Permanent(fmt.Errorf("message %s is a %s, and not a change", m.ID, m.Type))
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return c, pipeline.Permanent(fmt.Errorf("change %s: %w", m.ID, err))
	}
	return c, nil
}
