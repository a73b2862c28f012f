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
	mu     sync.Mutex
	queue  []*flow.Message
	signal chan struct{}
	room   chan struct{} // closed when there is room; nil while nobody waits
	// closed is why messages are refused; nil while they are not.
	closed error
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
	if b.closed != nil {
		return nil, b.closed
	}
	if len(b.queue) >= inboxSize {
		if b.room == nil {
			b.room = make(chan struct{})
		}
		return b.room, nil
	}
	b.queue = append(b.queue, m)
	if b.signal != nil {
		Notify(b.signal)
	}
	return nil, nil
}

// serve makes signal receive a token for new messages, and accepts messages again.
func (b *Inbox) serve(signal chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signal, b.closed = signal, nil
	Notify(signal)
}

// Clear drops all messages. Until the lane is served again, further ones are refused with err.
func (b *Inbox) Clear(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.signal, b.closed = nil, nil, err
	b.release()
}

// release wakes those who wait for room. The caller holds b.mu.
func (b *Inbox) release() {
	if b.room != nil {
		close(b.room)
		b.room = nil
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

// holds reports whether a message for key waits.
func (b *Inbox) holds(key string) bool {
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
	b.release()
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
