package voktertest

import (
	"context"
	"slices"
	"sync"

	"github.com/vokter/vokter/pipeline"
)

// Inbox is a sink that records what it is told. The zero Inbox is empty and accepts everything. It is safe for
// concurrent use.
type Inbox struct {
	mu   sync.Mutex
	got  []pipeline.Notification
	fail error
}

var _ pipeline.Sink = (*Inbox)(nil)

// Deliver records n, or returns the error of Fail.
func (b *Inbox) Deliver(_ context.Context, n pipeline.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	b.got = append(b.got, n)
	return nil
}

// Notifications returns what was delivered so far, in order.
func (b *Inbox) Notifications() []pipeline.Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// Fail makes later deliveries fail with err, so that they are tried again; nil ends that. The functions of package
// pipeline/failure mark an error as that of a receiver that refuses a notification, asks for a pause or is gone.
func (b *Inbox) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}
