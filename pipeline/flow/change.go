package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Change has all differences between two versions of a document, with the context that is needed to
// match keywords in them. It is the body of TypeChange, a public format that only gets new fields.
type Change struct {
	// ID is derived from what the change says, so that it is the same however often it is made.
	ID string `json:"id"`
	// URL and Page are the canonical URL of the page; Page is the key of the message.
	URL  string `json:"url"`
	Page string `json:"page"`
	// Document is the ID of the document in the page.
	Document string `json:"document"`
	// Incarnation names this life of the page, from the first subscription to the end of the last. Numbers of versions
	// do not repeat within it.
	Incarnation string `json:"incarnation"`
	Check       uint64 `json:"check,omitempty"` // the number of the check that found it
	// Version is the number of the new version, and Previous that of the one before.
	Version  uint64    `json:"version"`
	Previous uint64    `json:"previous"`
	Time     time.Time `json:"time"`               // of the check
	Language string    `json:"language,omitempty"` // of the new version, a BCP 47 tag
	// Title is that of the page.
	Title       string `json:"title,omitempty"`
	ContentType string `json:"content_type,omitempty"` // of the page, a media type
	// Baseline says that the version is compared with nothing: Previous is 0, and all of its text is added.
	Baseline bool    `json:"baseline,omitempty"`
	Groups   []Group `json:"groups"`
	Size     Size    `json:"size,omitzero"`
	// Muting names places of the document that change at nearly every check, so that from the next change
	// on their differences are muted. Whole says that nothing else of the document changes.
	Muting pipeline.Muting `json:"muting,omitzero"`
	Whole  bool            `json:"whole,omitempty"`
	// MutingWords names places whose words change at nearly every check, so that from the next change on their
	// differences are MutedWords.
	MutingWords pipeline.Muting `json:"muting_words,omitzero"`
	// Truncated says that the record was too large for a sink: Groups have no Old and New, and only
	// the first Differences. It is never set on TopicChanges.
	Truncated bool `json:"truncated,omitempty"`
}

// Size is how much of a document changed, in tokens.
type Size struct {
	// Removed and Added are the tokens that only the old or only the new version has, in all groups
	// that did not only move. In a coarse group, all tokens of the blocks that changed count.
	Removed int `json:"removed"`
	Added   int `json:"added"`
	// Moved are the tokens of the blocks that only moved.
	Moved int `json:"moved,omitempty"`
	// MutedRemoved and MutedAdded are those of Removed and Added that are in muted differences. Those in
	// differences with MutedWords are not among them.
	MutedRemoved int `json:"muted_removed,omitempty"`
	MutedAdded   int `json:"muted_added,omitempty"`
	WordsRemoved int `json:"muted_words_removed,omitempty"`
	WordsAdded   int `json:"muted_words_added,omitempty"`
	// Old and New are the tokens of the two versions.
	Old int `json:"old"`
	New int `json:"new"`
}

// Changed returns how many tokens changed: the removed or the added ones, whichever are more, so
// that a replaced token counts once. With moved, those of blocks that only moved count too.
func (s Size) Changed(moved bool) int {
	n := max(s.Removed, s.Added)
	if moved {
		n += s.Moved
	}
	return n
}

// Told returns s without what is muted; without what has MutedWords only where words is true.
func (s Size) Told(words bool) Size {
	s.Removed, s.Added = s.Removed-s.MutedRemoved, s.Added-s.MutedAdded
	if words {
		s.Removed, s.Added = s.Removed-s.WordsRemoved, s.Added-s.WordsAdded
	}
	s.MutedRemoved, s.MutedAdded, s.WordsRemoved, s.WordsAdded = 0, 0, 0, 0
	return s
}

// Length returns the tokens of the longer version.
func (s Size) Length() int { return max(s.Old, s.New) }

// Message returns c as a message on TopicChanges. Its body is made by Encoded.
func (c Change) Message() Message {
	return Message{ID: c.ID, Topic: TopicChanges, Key: c.Page, Type: TypeChange, Subject: c.Page, Time: c.Time,
		Header: map[string]string{headerContent: "application/json"}, decoded: c}
}

// ChangeFrom returns the change that m, a message of TypeChange, carries. It may share memory with others, and nobody
// may modify it. Its error is permanent.
func ChangeFrom(m Message) (c Change, err error) {
	if m.Type != TypeChange {
		return c, failure.Permanent(fmt.Errorf("message %s is a %s, and not a change", m.ID, m.Type))
	}
	if c, made := m.decoded.(Change); made && m.Body == nil {
		return c, nil
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return c, failure.Permanent(fmt.Errorf("change %s: %w", m.ID, err))
	}
	return c, nil
}

// Difference is a contiguous piece of text that was added or removed.
type Difference struct {
	Event pipeline.Event `json:"event"`
	// Text is the exact text. Offset is where it begins in the text of its version (the new one for
	// pipeline.Added, the old one for pipeline.Removed), in bytes.
	Text   string `json:"text"`
	Offset int    `json:"offset"`
	// Edit numbers the edits of the change from 1. What was removed and what was added in its place
	// have the same number. It is 0 in coarse groups.
	Edit int `json:"edit,omitempty"`
	// Muted says why subscriptions to every change are not told of it unless they ask for it:
	// MutedRestless or MutedPassed. With MutedWords they are told unless they ask not to be. Both sides of an
	// edit have the same.
	Muted string `json:"muted,omitempty"`
}

// Values of Difference.Muted.
const (
	MutedRestless = "restless" // it lies in numbers that change at nearly every check
	MutedPassed   = "passed"   // it lies in times such as "5 minutes ago", which grew as the clock did
	MutedWords    = "words"    // it lies in a place whose words change at nearly every check
)

// Group is a group of blocks that belong together, such as an edited paragraph in both versions, two
// paragraphs that were merged, or a new one. Keywords are matched within a group.
type Group struct {
	// Moved says that the block only moved: Old and New are the whole block, Differences is empty.
	Moved bool `json:"moved,omitempty"`
	// Item says what became of the item that the group is: it is one of the Item constants, or empty where
	// the group is no item. Title is the item's first block, or the heading in it, up to 100 bytes: of the
	// new version, for ItemGone of the old one.
	Item  string `json:"item,omitempty"`
	Title string `json:"title,omitempty"`
	// Old and New are the parts of the blocks around what was removed and added, in document order.
	Old []Window `json:"old,omitempty"`
	New []Window `json:"new,omitempty"`
	// OldPassages and NewPassages are the whole of what these windows are parts of, where a window is not
	// all of it: an item of several blocks, or a block that is longer than its windows. One of more than
	// MaxPassage bytes is left out, and so are those of a group that only one version has.
	OldPassages []Passage `json:"old_passages,omitempty"`
	NewPassages []Passage `json:"new_passages,omitempty"`
	// Coarse says that too much changed to find out which blocks belong together. The group then has
	// all blocks that changed, or with Moved all that only moved. Each Difference is a run of whole
	// blocks, with marks such as pipeline.BlockEnd between them, and Old and New are empty. With
	// Moved, Old and New are such runs, without Tokens and Edits. All words of the runs count as
	// changed, except those that the old and the new side have in common.
	Coarse bool `json:"coarse,omitempty"`
	// Differences are the edits as people read them, in order; in each, the removed text comes before
	// the added one. Edits of a block at most three equal tokens apart are one. If text was removed
	// and text was added in it, both texts contain these tokens.
	Differences []Difference `json:"differences,omitempty"`
}

// IsWhole reports whether g is an item that only one version has.
func (g *Group) IsWhole() bool { return g.Item == ItemNew || g.Item == ItemGone }

// What became of an item: Group.Item.
const (
	ItemNew     = pipeline.ItemNew
	ItemGone    = pipeline.ItemGone
	ItemChanged = pipeline.ItemChanged
)

// Window is a part of one block, in one version: one or more edits and the tokens around them, up to
// the border of the block, but at most 64 tokens and 1,000 characters beyond the outermost edits.
// Windows of one block that would touch are one Window.
type Window struct {
	// Offset is where Text begins in the text of the version, in bytes.
	Offset int `json:"offset"`
	// Text is the exact text from the start of the first token to the end of the last one, or from or
	// to the border of the block.
	Text string `json:"text"`
	// CutLeft and CutRight say that the block continues beyond Text.
	CutLeft  bool `json:"cut_left,omitempty"`
	CutRight bool `json:"cut_right,omitempty"`
	// Tokens are the tokens of Text: start and end in bytes within Text.
	Tokens Spans `json:"tokens,omitempty"`
	// Edits are the runs of tokens that only this version has, as indexes [start, end) into Tokens. An
	// empty run is a place where only the other version has tokens.
	Edits Spans `json:"edits,omitempty"`
}

// MaxPassage is how long a Passage is at most, in bytes.
const MaxPassage = 4000

// Passage is a part of a version's text: its blocks, with marks such as pipeline.BlockEnd between them.
type Passage struct {
	// Offset is where Text begins in the text of the version, in bytes.
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// Span is the half-open range Span[0] <= i < Span[1].
type Span [2]int

// Spans is a list of spans. In JSON it is a list of pairs of numbers.
type Spans []Span

// UnmarshalJSON reads the JSON form of s. Most of a change are such pairs, which reflection reads
// slowly.
func (s *Spans) UnmarshalJSON(b []byte) error {
	if spans, ok := parseSpans(b); ok {
		*s = spans
		return nil
	}
	return json.Unmarshal(b, (*[]Span)(s))
}

// parseSpans reads a list of pairs as encoding/json writes it: without white space, and of numbers
// that are not negative. It returns false for every other form.
func parseSpans(b []byte) (Spans, bool) {
	if len(b) < 2 || b[0] != '[' || b[len(b)-1] != ']' {
		return nil, false
	}
	spans := make(Spans, 0, bytes.Count(b, []byte("["))-1)
	for b = b[1:]; b[0] != ']'; {
		if len(spans) > 0 {
			if b[0] != ',' {
				return nil, false
			}
			b = b[1:]
		}
		var span Span
		for i, open := range []byte("[,") {
			if b[0] != open {
				return nil, false
			}
			digits := 0
			for b = b[1:]; '0' <= b[0] && b[0] <= '9' && digits < maxDigits; b = b[1:] {
				span[i] = span[i]*10 + int(b[0]-'0')
				digits++
			}
			if digits == 0 {
				return nil, false
			}
		}
		if b[0] != ']' || len(b) == 1 {
			return nil, false
		}
		b = b[1:]
		spans = append(spans, span)
	}
	return spans, len(b) == 1
}

// maxDigits is the length of the longest number that parseSpans reads; no int overflows with it.
const maxDigits = 9

// ShownAsOne is the largest number of equal tokens between two edits that are shown as one.
const ShownAsOne = 3

// ShownEdits returns the edits of a block, or of a Window of it, for people: without empty ones, and
// with those joined that are at most three equal tokens apart.
func ShownEdits(edits []Span) []Span {
	var shown []Span
	for _, e := range edits {
		last := len(shown) - 1
		switch {
		case e[0] == e[1]:
		case last >= 0 && e[0]-shown[last][1] <= ShownAsOne:
			shown[last][1] = e[1]
		default:
			shown = append(shown, e)
		}
	}
	return shown
}

// Told says that clients are notified of a version of a document: the notifications link to its difference.
type Told struct {
	Page        string    `json:"page"`
	Incarnation string    `json:"incarnation"`
	Document    string    `json:"document"`
	Version     uint64    `json:"version"`
	Time        time.Time `json:"time"` // of the check
}

// Message returns t as a message on TopicDocuments.
func (t Told) Message() Message {
	return Message{
		ID:    DeriveID("told", t.Page, t.Incarnation, t.Document, strconv.FormatUint(t.Version, 10)),
		Topic: TopicDocuments, Key: t.Page, Type: TypeTold, Subject: t.Page, Time: t.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(t),
	}
}

// ToldFrom is the inverse of Told.Message.
func ToldFrom(m Message) (Told, error) { return decode[Told](m, "told") }
