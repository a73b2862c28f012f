package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
)

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
	URL      string  `json:"url"`
	Document string  `json:"document"`
	From     Version `json:"from"`
	To       Version `json:"to"`
	// Size is how much changed, in tokens.
	Size flow.Size `json:"size"`
	Rows []Row     `json:"rows"`
	// Proposals are, where To is the current version, the places whose words change often.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// Row is a part of two texts side by side: blocks of the old one, and the blocks of the new one that
// belong to them.
type Row = diff.Row

// Line is one block, such as a paragraph, a heading or a table cell, of one version.
type Line = diff.Line

// Segment is a piece of a block: kept, or removed from the old version, or added in the new one.
type Segment = diff.Segment

// The kinds of a Row.
const (
	RowKept    = diff.RowKept
	RowChanged = diff.RowChanged
	RowRemoved = diff.RowRemoved
	RowAdded   = diff.RowAdded
	RowMoved   = diff.RowMoved
	RowSkipped = diff.RowSkipped
)

// compareBytesPerByte is how many bytes of memory it takes to compare two texts, for each of their bytes.
const compareBytesPerByte = 128

// Diff compares two versions of a document of the page of url, as the pipeline does: blocks that
// belong together are in one Row, and differences are runs of words. Of a feed whose items are
// watched, two successive versions show only what was new. Memory bounds the memory for large texts;
// nil means no bound. Diff fails like [Versions], and with a *flow.Refusal of CodeNotFound where one
// of the versions is not stored.
func Diff(ctx context.Context, s Store, memory flow.Memory, url string, f DiffFilter) (Difference, error) {
	out := Difference{Rows: []Row{}}
	d, err := openDocument(s, url, f.DocumentFilter)
	if err != nil {
		return out, err
	}
	out.URL, out.Document = d.page.URL, d.ID
	f.To = cmp.Or(f.To, d.N)
	to, err := d.loadVersion(f.To)
	if err != nil {
		return out, err
	}
	if f.From == 0 {
		f.From = cmp.Or(to.Previous, f.To-1)
		if _, kept, err := index.LoadVersion(d.state, d.ID, f.From); err != nil {
			return out, err
		} else if !kept {
			return out, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s has no version before version %d to compare it with", d.page.URL, f.To)}
		}
	}
	from, err := d.loadVersion(f.From)
	if err != nil {
		return out, err
	}
	old, oldKeys := from.text, flow.UnpackKeys(from.Packed)
	if to.Base != nil && f.From == to.Previous {
		if old, oldKeys, _, err = to.OldText(d.state, d.ID); err != nil {
			return out, err
		}
	}
	free, err := memory.Take(ctx, compareBytesPerByte*int64(len(old)+len(to.text)))
	if err != nil {
		return out, err
	}
	defer free()
	if out.From, err = describeVersion(f.From, from.StoredVersion); err != nil {
		return out, err
	}
	if out.To, err = describeVersion(f.To, to.StoredVersion); err != nil {
		return out, err
	}
	out.Rows, out.Size = diff.Rows(d.analyzeText(old, oldKeys), d.analyzeText(to.text, flow.UnpackKeys(to.Packed)))
	if f.Context >= 0 {
		out.Rows = diff.Around(out.Rows, f.Context)
	}
	if f.To == d.N {
		out.Proposals, err = wantedProposals(ctx, d.state, d.page, d.Document, d.subs)
	}
	return out, err
}
