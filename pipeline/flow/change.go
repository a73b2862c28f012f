package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Change carries all differences between two versions of a document, with what is
// needed to match keywords in them. It is the body of TypeChange, a public format
// that only grows.
type Change struct {
	ID          string    `json:"id"`
	URL         string    `json:"url"`
	Page        string    `json:"page"`
	Document    string    `json:"document"`
	Incarnation string    `json:"incarnation"`
	Check       uint64    `json:"check,omitempty"` // the number of the check that found it
	Version     uint64    `json:"version"`
	Previous    uint64    `json:"previous"`
	Time        time.Time `json:"time"` // of the check
	Stamp       uint64    `json:"stamp"`
	Language    string    `json:"language,omitempty"` // of the new version, a BCP 47 tag
	Title       string    `json:"title,omitempty"`
	Groups      []Group   `json:"groups"`
}

// Message returns c as a message on TopicChanges.
func (c Change) Message() (Message, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("change %s: %w", c.ID, err))
	}
	return Message{ID: c.ID, Topic: TopicChanges, Key: c.Page, Type: TypeChange, Subject: c.Page, Time: c.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// ChangeFrom returns the change that m, a message of TypeChange, carries. Its error is permanent.
func ChangeFrom(m Message) (c Change, err error) {
	if m.Type != TypeChange {
		return c, failure.Permanent(fmt.Errorf("message %s is a %s, and not a change", m.ID, m.Type))
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return c, failure.Permanent(fmt.Errorf("change %s: %w", m.ID, err))
	}
	return c, nil
}

// Difference is one contiguous stretch that was added or removed.
type Difference struct {
	Event pipeline.Event `json:"event"`
	// Text is the exact original text; Offset is where it begins in the text of its
	// version (the new one for added, the old one for removed), in bytes.
	Text   string `json:"text"`
	Offset int    `json:"offset"`
}

// Group is a group of blocks that belong together: an edited paragraph, two that
// merged, one that was split, a new one, one that went. Keywords are counted within it.
type Group struct {
	// Moved says that the block only changed place: Old and New are the whole block,
	// Differences is empty.
	Moved bool `json:"moved,omitempty"`
	// Old and New are the stretches of the group's blocks around what was removed and
	// added, in document order.
	Old []Window `json:"old,omitempty"`
	New []Window `json:"new,omitempty"`
	// Coarse says that so much changed that it was not found out which blocks belong together.
	// The group then holds all blocks that changed, or with Moved all that only changed place.
	// Each Difference is a stretch of whole blocks, with marks such as BlockEnd between them,
	// and Old and New are empty. With Moved, Old and New are such stretches, with neither
	// Tokens nor Edits. All words of the stretches changed, and those that Old and New, or what
	// was removed and what was added, have in common are not new.
	Coarse bool `json:"coarse,omitempty"`
	// Differences are the edits as people read them; see ShownEdits.
	Differences []Difference `json:"differences,omitempty"`
}

// Window is a stretch of one block, on one side: one or more edits and the tokens
// around them, up to the block's border but at most 64 tokens and 1,000 characters
// beyond the outermost edits. Windows of one block that would touch are one.
type Window struct {
	// Offset is where Text begins in the version's text, in bytes.
	Offset int `json:"offset"`
	// Text is the exact text of the stretch, from the first to the end of the last token,
	// or from and to the block's border where the stretch reaches it.
	Text string `json:"text"`
	// CutLeft and CutRight say that the block goes on beyond the stretch.
	CutLeft  bool `json:"cut_left,omitempty"`
	CutRight bool `json:"cut_right,omitempty"`
	// Tokens are the tokens of Text: start and end in bytes within Text.
	Tokens []Span `json:"tokens,omitempty"`
	// Edits are the runs of tokens, as indexes [start, end) into Tokens, that are only on
	// this side. An empty run is a place where the other side has tokens of its own that
	// are not here: a deletion that joined, or an insertion that split, its neighbours.
	Edits []Span `json:"edits,omitempty"`
}

// Span is a half-open range [0] <= i < [1].
type Span [2]int

// shownAsOne is how many equal tokens may stand between edits that are shown as one.
const shownAsOne = 3

// ShownEdits returns the edits of one block, or of a window of it, as people read them: those
// that hold tokens, and as one those that are at most three equal tokens apart.
func ShownEdits(edits []Span) []Span {
	var shown []Span
	for _, e := range edits {
		last := len(shown) - 1
		switch {
		case e[0] == e[1]:
		case last >= 0 && e[0]-shown[last][1] <= shownAsOne:
			shown[last][1] = e[1]
		default:
			shown = append(shown, e)
		}
	}
	return shown
}
