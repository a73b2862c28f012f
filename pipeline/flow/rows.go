package flow

import "github.com/vokter/vokter/pipeline"

// The kinds of a Row.
const (
	RowKept    = "kept"    // the same words in both versions
	RowChanged = "changed" // blocks of both versions that belong together
	RowRemoved = "removed" // blocks of the old version only
	RowAdded   = "added"   // blocks of the new version only
	RowMoved   = "moved"   // the same words at another place
	RowSkipped = "skipped" // stands for rows of RowKept that were left out
)

// Row is a part of two texts side by side: blocks of the old one and the blocks of the new one that
// belong to them.
type Row struct {
	Kind string `json:"kind"` // one of the Row constants
	Old  []Line `json:"old,omitempty"`
	New  []Line `json:"new,omitempty"`
	// OtherLink says that an item of the other version is much like this one, and its link, id or GUID is another. In
	// RowRemoved and RowAdded they are therefore two items; in RowKept and RowMoved all words are the same, so that
	// they are one.
	OtherLink bool `json:"other_link,omitempty"`
	// Item says what became of the list item, table row or card that the row is, and Title names it, as in Group.
	Item  string `json:"item,omitempty"`
	Title string `json:"title,omitempty"`
	// Skipped is, for RowSkipped, how many rows were left out.
	Skipped int `json:"skipped,omitempty"`
}

// AboutLink says what another link means for the item that r is. It is empty if OtherLink is not set.
func (r Row) AboutLink() string {
	switch {
	case !r.OtherLink:
		return ""
	case r.Kind == RowAdded || r.Kind == RowRemoved:
		return "another item: its link changed"
	}
	return "the same item: only its link changed"
}

// Line is one block, such as a paragraph, a heading or a table cell, of one version.
type Line struct {
	// Offset is where the block begins in the text of its version, in bytes.
	Offset   int       `json:"offset"`
	Segments []Segment `json:"segments"`
}

// Segment is a piece of a block: kept, or removed from the old version, or added in the new one.
type Segment struct {
	Text  string         `json:"text"`
	Event pipeline.Event `json:"event,omitempty"` // empty for what was kept
}
