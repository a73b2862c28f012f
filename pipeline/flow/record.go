package flow

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// MaxChangeRecord is the largest size of a change record for a sink, in bytes. With its headers it
// fits into a Kafka record of 1 MiB, the default limit of brokers.
const MaxChangeRecord = 960 << 10

// Notification returns c as a notification of type pipeline.NotificationTypeChange. Its ID is that
// of the message on TopicChanges. A record that is larger than MaxChangeRecord is shortened:
// Truncated is set then.
func (c Change) Notification() (pipeline.Notification, error) {
	record, err := c.recordJSON()
	if err != nil {
		return pipeline.Notification{}, failure.Permanent(fmt.Errorf("change %s: %w", c.ID, err))
	}
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: c.URL, Diffs: []pipeline.Diff{}, ID: c.ID, Type: pipeline.NotificationTypeChange, Time: c.Time,
		Version: c.Version, Title: c.Title, Language: c.Language, ContentType: c.ContentType, Change: c.ID, Record: record,
	}, nil
}

// recordJSON returns c as JSON for a change record. If it is too large, it has no windows, as many differences as fit,
// and only the beginnings of long texts.
func (c Change) recordJSON() (json.RawMessage, error) {
	b, err := json.Marshal(c)
	if err != nil || len(b) <= MaxChangeRecord {
		return b, err
	}
	groups := c.Groups
	c.Truncated, c.Groups = true, nil
	if b, err = json.Marshal(c); err != nil {
		return nil, err
	}
	room := MaxChangeRecord - len(b) - len("[]")
	for _, g := range groups {
		short := Group{Moved: g.Moved, Item: g.Item, Title: g.Title, Coarse: g.Coarse}
		if b, err = json.Marshal(short); err != nil {
			return nil, err
		}
		room -= len(b) + len(`,"differences":[],`)
		for _, d := range g.Differences {
			if len(d.Text) > maxRecordText {
				d.Text = strings.ToValidUTF8(d.Text[:maxRecordText], "")
			}
			if b, err = json.Marshal(d); err != nil {
				return nil, err
			}
			if room -= len(b) + len(","); room < 0 {
				break
			}
			short.Differences = append(short.Differences, d)
		}
		if len(short.Differences) == 0 && len(c.Groups) > 0 {
			break
		}
		if c.Groups = append(c.Groups, short); room < 0 {
			break
		}
	}
	return json.Marshal(c)
}

// maxRecordText is how long a text of a shortened record may be, in bytes. JSON takes at most six
// times as many.
const maxRecordText = 64 << 10
