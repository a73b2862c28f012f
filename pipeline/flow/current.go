package flow

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Current is the current text of a document. It is the body of TypeCurrent, a public format that only gets new fields.
type Current struct {
	Document    string    `json:"document"`
	Page        string    `json:"page"`
	Incarnation string    `json:"incarnation"`
	Version     uint64    `json:"version"`
	Previous    uint64    `json:"previous,omitempty"` // the version that it was compared with, if any
	Time        time.Time `json:"time"`               // of the check that found it
	Title       string    `json:"title,omitempty"`
	Language    string    `json:"language,omitempty"`     // a BCP 47 tag
	ContentType string    `json:"content_type,omitempty"` // of the page, a media type
	Hash        string    `json:"hash"`                   // differs where the text or its structure does
	// Text is the text, see PlainText. The offsets in the change that made the version are bytes of it.
	Text string `json:"text"`
	// Truncated says that Text is only the beginning of the text, which is too large for a record.
	Truncated bool `json:"truncated,omitempty"`
	// Link is the address of the web page with the difference between the version and the one before.
	Link string `json:"link,omitempty"`
}

// maxCurrent is the largest size of the JSON of a Current, in bytes. Every transport takes a record of that size.
const maxCurrent = 4 << 20

// Message returns c as a message on TopicCurrent. A text with which the body would be larger than 4 MiB is cut.
func (c Current) Message() (Message, error) {
	b, err := json.Marshal(c)
	if err == nil && len(b) > maxCurrent {
		// JSON takes at most six bytes for one of the text.
		c.Text, c.Truncated = strings.ToValidUTF8(c.Text[:min(len(c.Text), maxCurrent/8)], ""), true
		b, err = json.Marshal(c)
	}
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("version %d of %s: %w", c.Version, c.Page, err))
	}
	id := DeriveID("current", c.Document, c.Incarnation, strconv.FormatUint(c.Version, 10), c.Hash)
	return Message{ID: id, Topic: TopicCurrent, Key: c.Document, Type: TypeCurrent, Subject: c.Page, Time: c.Time.Round(0).UTC(),
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// Gone returns the message on TopicCurrent that a document ended, which has no body: a tombstone.
func Gone(page, incarnation, document string, at time.Time) Message {
	return Message{ID: DeriveID("gone", document, incarnation), Topic: TopicCurrent, Key: document, Type: TypeCurrent, Subject: page, Time: at,
		Header: map[string]string{headerContent: "application/json"}}
}

// PlainText returns the text of a version without the marks of list items and table rows. Each becomes
// a line break, so that all offsets stay the same.
func PlainText(content string) string {
	return strings.Map(func(r rune) rune {
		if r == pipeline.ItemStart || r == pipeline.ItemEnd {
			return pipeline.BlockEnd
		}
		return r
	}, content)
}
