package pipeline

import "context"

// Memory bounds how much memory the stages take at the same time for what needs much. It waits
// until there is room for bytes more, or where they are more than there is at all for all of
// it, and returns a function that gives the room back, to be called once. It fails with the
// cause of ctx where that ends first. It must be safe for concurrent use.
type Memory func(ctx context.Context, bytes int64) (free func(), err error)

// Take calls m. A nil Memory has no bound.
func (m Memory) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	return m(ctx, bytes)
}
