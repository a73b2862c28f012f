//go:build breaktx

package local

import (
	"time"

	"github.com/vokter/vokter/pipeline/store"
)

// applyWith is broken on purpose, so that the crash campaign can prove that it would
// notice: the position is durable first, and what the handler did only a while later.
func (t *Transport) applyWith(b *store.Batch, x *tx) (wait func() error, err error) {
	first, err := t.db.NewBatch(false)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	t.position(first, x)
	if err := first.Commit(true); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Millisecond)
	return b.Apply(x.sync)
}
