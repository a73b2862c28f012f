package slackfake

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Limits of a message, in characters where they are of texts.
const (
	// MaxText is from where Slack splits the text of a message, wherever that may be. The
	// fake refuses such a text.
	MaxText = 4_000
	// MaxBlocks is how many blocks a message has at most.
	MaxBlocks = 50
	// MaxAllBlocks is how long the texts and URLs of all blocks are together; Slack does not
	// document it, and has refused 11,341.
	MaxAllBlocks = 9_600

	maxTextObject = 3_000
	maxHeader     = 150
	maxFields     = 10
	maxField      = 2_000
	maxBlockID    = 255
	maxURL        = 3_000
)

// check returns Slack's word for what is wrong with m, or "".
func check(m *Message) string {
	if m.Text == "" && len(m.Blocks) == 0 {
		return "no_text"
	}
	if utf8.RuneCountInString(m.Text) > MaxText {
		return "msg_too_long"
	}
	if m.Metadata != nil {
		var meta struct {
			Type    string         `json:"event_type"`
			Payload map[string]any `json:"event_payload"`
		}
		if json.Unmarshal(m.Metadata, &meta) != nil {
			return "invalid_metadata_format"
		}
		if meta.Type == "" || meta.Payload == nil {
			return "invalid_metadata_schema"
		}
	}
	if m.Blocks == nil {
		return ""
	}
	return CheckBlocks(m.Blocks)
}

// CheckBlocks returns Slack's word for what is wrong with the blocks of a message, or "".
func CheckBlocks(raw json.RawMessage) string {
	var blocks []block
	if json.Unmarshal(raw, &blocks) != nil {
		return "invalid_blocks_format"
	}
	if len(blocks) == 0 || len(blocks) > MaxBlocks {
		return "invalid_blocks"
	}
	total := 0
	for _, b := range blocks {
		n, ok := b.check()
		if !ok || utf8.RuneCountInString(b.ID) > maxBlockID {
			return "invalid_blocks"
		}
		total += n
	}
	if total > MaxAllBlocks {
		return "msg_blocks_too_long"
	}
	return ""
}

// block is one of a message. Its elements, and theirs, have the same form.
type block struct {
	Type     string      `json:"type"`
	ID       string      `json:"block_id"`
	Text     *textObject `json:"text"`
	Fields   []textObject
	Elements json.RawMessage
}

// button is one of an actions block.
type button struct {
	Type     string
	ActionID string `json:"action_id"`
	Text     textObject
	Value    string
	URL      string
	Style    string
}

// The limits of a button.
const (
	maxButtons     = 25
	maxButtonText  = 75
	maxButtonValue = 2000
	maxButtonURL   = 3000
)

// checkButtons returns how long the texts of the buttons in raw are, and whether they are allowed.
func checkButtons(raw json.RawMessage) (int, bool) {
	var all []button
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 || len(all) > maxButtons {
		return 0, false
	}
	total, ids := 0, make(map[string]bool)
	for _, b := range all {
		n, ok := b.Text.check(maxButtonText)
		style := b.Style == "" || b.Style == "primary" || b.Style == "danger"
		if !ok || b.Type != "button" || b.Text.Type != "plain_text" || len(b.Value) > maxButtonValue || len(b.URL) > maxButtonURL || ids[b.ActionID] || !style {
			return 0, false
		}
		ids[b.ActionID] = true
		total += n
	}
	return total, true
}

type textObject struct{ Type, Text string }

// element is one of a rich_text or context block.
type element struct {
	Type     string
	Text     string
	URL      string
	Name     string
	Elements []element
}

// check returns how long the texts of b are, and whether it is allowed.
func (b block) check() (int, bool) {
	var elements []element
	if b.Type == "rich_text" || b.Type == "context" {
		if json.Unmarshal(b.Elements, &elements) != nil {
			return 0, false
		}
	}
	switch b.Type {
	case "divider":
		return 0, true
	case "actions":
		return checkButtons(b.Elements)
	case "rich_text":
		return sum(elements, element.checkPart)
	case "context":
		return sum(elements, func(e element) (int, bool) {
			return textObject{e.Type, e.Text}.check(maxTextObject)
		})
	case "header":
		if b.Text == nil || b.Text.Type != "plain_text" {
			return 0, false
		}
		return b.Text.check(maxHeader)
	case "section":
		total := 0
		if b.Text != nil {
			n, ok := b.Text.check(maxTextObject)
			if !ok {
				return 0, false
			}
			total = n
		}
		if b.Text == nil && len(b.Fields) == 0 || len(b.Fields) > maxFields {
			return 0, false
		}
		for _, f := range b.Fields {
			n, ok := f.check(maxField)
			if !ok {
				return 0, false
			}
			total += n
		}
		return total, true
	}
	return 0, false
}

func (t textObject) check(limit int) (int, bool) {
	n := utf8.RuneCountInString(t.Text)
	return n, n >= 1 && n <= limit && (t.Type == "plain_text" || t.Type == "mrkdwn")
}

// checkPart is for what a rich_text block consists of.
func (e element) checkPart() (int, bool) {
	switch e.Type {
	case "rich_text_section", "rich_text_quote", "rich_text_preformatted":
		return sum(e.Elements, element.checkInline)
	case "rich_text_list":
		return sum(e.Elements, element.checkPart)
	}
	return 0, false
}

// checkInline is for what stands in a line of rich text.
func (e element) checkInline() (int, bool) {
	n := utf8.RuneCountInString(e.Text)
	switch e.Type {
	case "text":
		return n, n > 0
	case "emoji":
		return 0, e.Name != ""
	case "link":
		u := utf8.RuneCountInString(e.URL)
		return n + u, u <= maxURL && (strings.HasPrefix(e.URL, "https://") || strings.HasPrefix(e.URL, "http://"))
	}
	return 0, false
}

// sum adds up what check returns for all of es, of which there has to be one.
func sum(es []element, check func(element) (int, bool)) (int, bool) {
	total := 0
	for _, e := range es {
		n, ok := check(e)
		if !ok {
			return 0, false
		}
		total += n
	}
	return total, len(es) > 0
}
