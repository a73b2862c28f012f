// Package memory says how much memory the process may use, and shares it out.
package memory

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// smallest is how many pieces of work must at least fit into a Budget for one not to wait.
const smallest = 64

// Budget is memory that pieces of work share. It is safe for concurrent use.
type Budget struct {
	room *semaphore.Weighted
	size int64
}

// NewBudget returns a Budget of size bytes, at least 1.
func NewBudget(size int64) *Budget {
	size = max(size, 1)
	return &Budget{room: semaphore.NewWeighted(size), size: size}
}

// Take waits until there is room for bytes, in the order of the calls, and returns a function
// that gives the room back. Whoever wants more than there is gets all of it. What takes less
// than a 64th of the Budget does not wait and is not counted, so that small pages are not held
// up by large ones. Take fails with the cause of ctx where that ends first.
func (b *Budget) Take(ctx context.Context, bytes int64) (free func(), err error) {
	if bytes < b.size/smallest || bytes <= 0 {
		return func() {}, nil
	}
	bytes = min(bytes, b.size)
	if b.room.Acquire(ctx, bytes) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { b.room.Release(bytes) }, nil
}
