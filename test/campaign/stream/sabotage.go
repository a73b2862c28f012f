package main

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// splitCommitTransport is a transport that commits each transaction in two parts: state and position are
// committed first, and the outputs are published a while later. A kill between the two loses
// the outputs. Without a Transport it opens the embedded one.
type splitCommitTransport struct{ flow.Transport }

var _ flow.Transport = (*splitCommitTransport)(nil)

func (s *splitCommitTransport) Start(ctx context.Context, w flow.Wiring) error {
	if s.Transport == nil {
		t, err := local.Open(local.Config{
			Dir: w.Dir, MinFree: w.MinFree, Topics: w.Topics, Grace: w.Grace,
			Now: w.Now, Logger: w.Logger, OnFatal: w.OnFatal, OnBroken: w.OnBroken,
		})
		if err != nil {
			return err
		}
		s.Transport = t
	}
	return s.Transport.Start(ctx, w)
}

func (s *splitCommitTransport) Ready() error {
	if s.Transport == nil {
		return errors.New("the store is not open yet")
	}
	return s.Transport.Ready()
}

func (s *splitCommitTransport) Gauges() []flow.Gauge {
	if s.Transport == nil {
		return nil
	}
	return s.Transport.Gauges()
}

func (s *splitCommitTransport) Close() error {
	if s.Transport == nil {
		return nil
	}
	return s.Transport.Close()
}

func (s *splitCommitTransport) Subscriber(group string) message.Subscriber {
	return &splitCommitSubscriber{s.Transport.Subscriber(group), s.Transport}
}

// splitCommitSubscriber gives every message a splitTx.
type splitCommitSubscriber struct {
	message.Subscriber
	publisher flow.Publisher
}

func (s *splitCommitSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for m := range in {
			if tx, ok := flow.TxFrom(m.Context()); ok {
				m.SetContext(flow.WithTx(m.Context(), &splitTx{Tx: tx, publisher: s.publisher}))
			}
			out <- m
		}
	}()
	return out, nil
}

// splitDelay is the time between the two parts. With a tenth of it twelve kills over Kafka once hit none.
const splitDelay = 40 * time.Millisecond

// splitTx is a transaction that publishes its outputs after its commit.
type splitTx struct {
	flow.Tx
	publisher flow.Publisher
	delayed   []flow.Message
}

func (h *splitTx) Emit(m flow.Message) {
	switch m.Topic {
	case flow.TopicSnapshots, flow.TopicChanges, flow.TopicSubscriptions:
		h.Tx.Emit(m) // the chain hands them on; nobody publishes them
		return
	}
	if h.delayed = append(h.delayed, m); len(h.delayed) == 1 {
		h.Sync() // or a kill would lose the first part too, which waits to be written
		h.OnCommit(h.publish)
	}
}

func (h *splitTx) Reset() {
	h.delayed = nil
	h.Tx.Reset()
}

func (h *splitTx) publish() {
	time.Sleep(splitDelay)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = h.publisher.Publish(ctx, h.delayed...) // an error loses the outputs, as a kill would
}
