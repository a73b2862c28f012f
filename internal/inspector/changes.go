package inspector

import (
	"context"
	"slices"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
)

// Changes compares the stored versions of a document of the page of url again and returns the
// changes, as the pipeline published them, or the last so many of them; with 0 all. Incarnation and Stamp are left out.
// Memory bounds the memory for large texts; nil means no bound. Changes fails like [Versions].
func Changes(ctx context.Context, s Store, memory flow.Memory, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error) {
	h := inspect.ChangeHistory{Changes: []flow.Change{}}
	d, err := openDocument(s, url, f)
	if err != nil {
		return h, err
	}
	h.URL, h.Document = d.page.URL, d.ID
	numbers, err := index.KeptVersions(d.state, d.ID)
	if err != nil {
		return h, err
	}
	h.Versions = len(numbers)
	for _, n := range numbers {
		if last > 0 && len(h.Changes) == last {
			break
		}
		v, ok, err := index.LoadVersion(d.state, d.ID, n)
		if err != nil {
			return h, err
		}
		if !ok {
			h.Versions-- // dropped meanwhile
			continue
		}
		c, ok, err := d.compareWithPrevious(ctx, memory, n, v)
		if err != nil {
			return h, err
		}
		if ok {
			h.Changes = append(h.Changes, c)
		}
	}
	slices.Reverse(h.Changes)
	h.Proposals, err = proposalsFor(ctx, d.state, d.page, d.Document)
	return h, err
}

// compareWithPrevious returns the change that made v, version n. ok is false where there is none, or the version
// before is not stored.
func (d storedDocument) compareWithPrevious(ctx context.Context, memory flow.Memory, n uint64, v index.StoredVersion) (c flow.Change, ok bool, err error) {
	if v.Previous == 0 {
		return c, false, nil
	}
	free, err := memory.Take(ctx, compareBytesPerByte*2*flow.UnpackedSize(v.Packed))
	if err != nil {
		return c, false, err
	}
	defer free()
	snapshot, ok, err := index.SnapshotOf(d.state, &d.page, &d.Document, n)
	if err != nil || !ok {
		return c, false, err
	}
	c, ok = diff.ChangeOf(snapshot)
	return c, ok, context.Cause(ctx)
}
