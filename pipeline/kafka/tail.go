package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// Tail yields what any process publishes to topic from now on, in the order of each lane,
// until ctx is done; then the channel is closed. It is for messages that matter for seconds:
// those of a time in which the brokers were away may be missing.
func (t *Transport) Tail(ctx context.Context, topic string) (<-chan flow.Message, error) {
	if t.ctx.Err() != nil || !t.ready.Load() {
		return nil, ErrClosed
	}
	if err := t.ensure(ctx, topic); err != nil {
		return nil, err
	}
	client, err := patiently(ctx, t, func() (sarama.Client, error) { return sarama.NewClient(t.cfg.Brokers, t.base) })
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	c, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", errors.Join(err, client.Close()))
	}
	out := make(chan flow.Message)
	var parts []sarama.PartitionConsumer
	for lane := range t.lanes {
		pc, err := patiently(ctx, t, func() (sarama.PartitionConsumer, error) {
			return c.ConsumePartition(t.cfg.Prefix+topic, int32(lane), sarama.OffsetNewest)
		})
		if err != nil {
			for _, pc := range parts {
				_ = pc.Close()
			}
			return nil, fmt.Errorf("kafka: %w", errors.Join(err, c.Close(), client.Close()))
		}
		parts = append(parts, pc)
	}
	var readers sync.WaitGroup
	for _, pc := range parts {
		readers.Go(func() { t.tail(ctx, pc, topic, out) })
	}
	go func() {
		readers.Wait()
		close(out)
		_, _ = c.Close(), client.Close()
	}()
	return out, nil
}

// tail hands on what pc reads until ctx is done.
func (t *Transport) tail(ctx context.Context, pc sarama.PartitionConsumer, topic string, out chan<- flow.Message) {
	errs := pc.Errors()
	defer func() {
		pc.AsyncClose()
		for range pc.Messages() {
		}
	}()
	for {
		select {
		case r, ok := <-pc.Messages():
			if !ok {
				return
			}
			_, meta := received(r)
			m, err := flow.FromMetadata(meta, r.Value)
			if err != nil {
				continue // somebody else's
			}
			m.Topic = topic
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
			}
		case <-ctx.Done():
			return
		}
	}
}
