// Package expiring has contexts whose deadline passes when a test says so.
package expiring

import (
	"context"
	"sync"
)

// deadline is a context that ends with its channel.
type deadline struct {
	context.Context
	passed chan struct{}
}

// New returns a context whose deadline passes when expire is called.
func New(parent context.Context) (ctx context.Context, expire func()) {
	d := deadline{parent, make(chan struct{})}
	return d, sync.OnceFunc(func() { close(d.passed) })
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
