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
