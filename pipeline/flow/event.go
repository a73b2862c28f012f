package flow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// CloudEvent returns n as a CloudEvent for receivers outside the pipeline. Its Body is the documented
// JSON. Its Attributes, except HeaderKey, are what the CloudEvents bindings for Kafka and others
// put into headers. Its Type is Notification.Type as "vokter.TYPE.v1", such as
// TypeNotification. Its Topic and Key are empty. An n that cannot be an event gives a permanent
// error.
func CloudEvent(n pipeline.Notification) (Message, error) {
	if n.ID == "" {
		return Message{}, pipeline.Permanent(errors.New("the notification has no ID"))
	}
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return Message{}, pipeline.Permanent(fmt.Errorf("encoding the notification: %w", err))
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
