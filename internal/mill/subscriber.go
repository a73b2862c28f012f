package mill

import (
	"context"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Subscribe opens a subscription to topic that ends with ctx, and returns its channel and what
// closes it: that returns when the channel is closed.
type Subscribe func(ctx context.Context, topic string) (out <-chan *message.Message, end func(), err error)

// NewSubscriber returns a Watermill subscriber whose subscriptions subscribe opens. Closing it
// closes all that were made through it; after that it returns closed.
func NewSubscriber(subscribe Subscribe, closed error) message.Subscriber {
	return &subscriber{subscribe: subscribe, closed: closed}
}

type subscriber struct {
	subscribe Subscribe
	closed    error

	mu   sync.Mutex
	over bool
	ends []func()
}

func (s *subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, s.closed
	}
	out, end, err := s.subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, end)
	return out, nil
}

func (s *subscriber) Close() error {
	s.mu.Lock()
	s.over = true
	ends := s.ends
	s.mu.Unlock()
	EndAll(ends)
	return nil
}

// EndAll calls all of ends at the same time and returns when they have returned.
func EndAll(ends []func()) {
	var wg sync.WaitGroup
	for _, end := range ends {
		wg.Go(end)
	}
	wg.Wait()
}
