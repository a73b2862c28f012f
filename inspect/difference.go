package inspect

import "github.com/vokter/vokter/pipeline/flow"

// DiffFilter says which versions Diff compares, and how much of their texts it returns.
type DiffFilter struct {
	DocumentFilter
	// From is the number of the older version, 0 for the one before To. To is the number of the newer
	// version, 0 for the current one.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// Context is how many unchanged blocks before and after each change are returned. Negative: all.
	Context int `json:"context,omitempty"`
}

// Difference is what Diff returns: two versions of a document side by side.
type Difference struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// From is the older version, and To the newer one.
	From Version `json:"from"`
	To   Version `json:"to"`
	// Size is how much changed, in tokens.
	Size flow.Size `json:"size"`
	// Rows are the parts of both texts, in the order of the newer one.
	Rows []Row `json:"rows"`
	// Proposals are, where To is the current version, the places whose words change often.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// Row is a part of two texts side by side: blocks of the old one, and the blocks of the new one that
// belong to them.
type Row = flow.Row

// Line is one block, such as a paragraph, a heading or a table cell, of one version.
type Line = flow.Line

// Segment is a piece of a block: kept, or removed from the old version, or added in the new one.
type Segment = flow.Segment

// The kinds of a Row.
const (
	RowKept    = flow.RowKept
	RowChanged = flow.RowChanged
	RowRemoved = flow.RowRemoved
	RowAdded   = flow.RowAdded
	RowMoved   = flow.RowMoved
	RowSkipped = flow.RowSkipped
)
