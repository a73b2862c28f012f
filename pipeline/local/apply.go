//go:build !breaktx

package local

import "github.com/vokter/vokter/pipeline/store"

// applyWith applies b together with the position of x's message: one batch.
func (t *Transport) applyWith(b *store.Batch, x *tx) (wait func() error, err error) {
	t.position(b, x)
	return b.Apply(x.sync)
}
