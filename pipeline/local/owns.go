package local

import (
	"context"

	"github.com/vokter/vokter/pipeline/flow"
)

// Owns reports that this process handles the messages of every key: no other can have the store.
func (t *Transport) Owns(string) bool { return true }

// Epoch is 0: lanes never move.
func (t *Transport) Epoch(string) uint64 { return 0 }

// Gained is nil: all lanes are owned from the start.
func (t *Transport) Gained() <-chan struct{} { return nil }

// Tail yields nothing until ctx is done: there are no other processes.
func (t *Transport) Tail(ctx context.Context, _ string) (<-chan flow.Message, error) {
	none := make(chan flow.Message)
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}

// Gauges is nil: the Router counts all there is to count.
func (t *Transport) Gauges() []flow.Gauge { return nil }
