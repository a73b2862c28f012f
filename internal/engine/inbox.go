package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
)

// inboxSize is how many posted messages a lane holds before Post blocks.
const inboxSize = 256

// Inbox holds the messages that were posted to a group in a lane, and the one that is being handled.
// The zero Inbox is empty. It is safe for concurrent use.
type Inbox struct {
	mu        sync.Mutex
	queue     []*flow.Message
	signal    chan struct{}
	roomFreed chan struct{} // closed when there is room; nil while nobody waits
	// refusal is why messages are refused; nil while they are not.
	refusal error
}

// Post appends m. It blocks while there is no room, until ctx is done or over is closed: then it
// returns the error ended.
func (b *Inbox) Post(ctx context.Context, m *flow.Message, over <-chan struct{}, ended error) error {
	for {
		wait, err := b.add(m)
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("posting into a full inbox: %w", context.Cause(ctx))
		case <-over:
			return ended
		}
	}
}

// add appends m. If there is no room, wait is closed when there may be.
func (b *Inbox) add(m *flow.Message) (wait <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusal != nil {
		return nil, b.refusal
	}
	if len(b.queue) >= inboxSize {
		if b.roomFreed == nil {
			b.roomFreed = make(chan struct{})
		}
		return b.roomFreed, nil
	}
	b.queue = append(b.queue, m)
	if b.signal != nil {
		Notify(b.signal)
	}
	return nil, nil
}

// startServing makes signal receive a token for new messages, and accepts messages again.
func (b *Inbox) startServing(signal chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signal, b.refusal = signal, nil
	Notify(signal)
}

// Clear drops all messages. Until the lane is served again, further ones are refused with err.
func (b *Inbox) Clear(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.signal, b.refusal = nil, nil, err
	b.signalRoom()
}

// signalRoom wakes those who wait for room. The caller holds b.mu.
func (b *Inbox) signalRoom() {
	if b.roomFreed != nil {
		close(b.roomFreed)
		b.roomFreed = nil
	}
}

// peek returns the oldest message, or nil.
func (b *Inbox) peek() *flow.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	return b.queue[0]
}

// hasKey reports whether a message for key waits.
func (b *Inbox) hasKey(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.queue, func(m *flow.Message) bool { return m.Key == key })
}

// pop removes the oldest message.
func (b *Inbox) pop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
	b.signalRoom()
}

// Empty reports whether no message waits or is being handled.
func (b *Inbox) Empty() bool { return b.peek() == nil }

// Notify puts a token into signal, which has room for one, unless it has one.
func Notify(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
