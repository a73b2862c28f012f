package main

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// sabotaged is a transport whose transactions come in two halves: state and position are
// committed first, and the outputs are published a while later. A kill between the two loses
// the outputs. Without a Transport it opens the embedded one.
type sabotaged struct{ flow.Transport }

var _ flow.Transport = (*sabotaged)(nil)

func (s *sabotaged) Start(ctx context.Context, w flow.Wiring) error {
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

func (s *sabotaged) Ready() error {
	if s.Transport == nil {
		return errors.New("the store is not open yet")
	}
	return s.Transport.Ready()
}

func (s *sabotaged) Gauges() []flow.Gauge {
	if s.Transport == nil {
		return nil
	}
	return s.Transport.Gauges()
}

func (s *sabotaged) Close() error {
	if s.Transport == nil {
		return nil
	}
	return s.Transport.Close()
}

func (s *sabotaged) Subscriber(group string) message.Subscriber {
	return &subscriber{s.Transport.Subscriber(group), s.Transport}
}

// subscriber gives every message a transaction in two halves.
type subscriber struct {
	message.Subscriber
	to flow.Publisher
}

func (s *subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for m := range in {
			if tx, ok := flow.TxFrom(m.Context()); ok {
				m.SetContext(flow.WithTx(m.Context(), &halves{Tx: tx, to: s.to}))
			}
			out <- m
		}
	}()
	return out, nil
}

// gap is the time between the two halves. With a tenth of it twelve kills over Kafka once hit none.
const gap = 40 * time.Millisecond

// halves is a transaction that publishes its outputs after its commit.
type halves struct {
	flow.Tx
	to  flow.Publisher
	out []flow.Message
}

func (h *halves) Emit(m flow.Message) {
	if m.Topic == flow.TopicSubscriptions {
		h.Tx.Emit(m) // without a stamp match would wait for ever, and nobody could count what is lost
		return
	}
	if h.out = append(h.out, m); len(h.out) == 1 {
		h.Sync() // or a kill would lose the first half too, which waits to be written
		h.OnCommit(h.publish)
	}
}

func (h *halves) Reset() {
	h.out = nil
	h.Tx.Reset()
}

func (h *halves) publish() {
	time.Sleep(gap)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = h.to.Publish(ctx, h.out...) // an error loses the outputs, as a kill would
}
