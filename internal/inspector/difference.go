package inspector

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
)

// compareBytesPerByte is how many bytes of memory it takes to compare two texts, for each of their bytes.
const compareBytesPerByte = 128

// Diff compares two versions of a document of the page of url, as the pipeline does: blocks that
// belong together are in one Row, and differences are runs of words. Of a feed whose items are
// watched, two successive versions show only what was new. Memory bounds the memory for large texts;
// nil means no bound. Diff fails like [Versions], and with a *flow.Refusal of CodeNotFound where one
// of the versions is not stored.
func Diff(ctx context.Context, s Store, memory flow.Memory, url string, f inspect.DiffFilter) (inspect.Difference, error) {
	out := inspect.Difference{Rows: []inspect.Row{}}
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
