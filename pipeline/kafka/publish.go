package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Publish writes ms to their topics, all or none, and returns once all in-sync replicas have
// them. It blocks while the brokers are unreachable, until ctx is done or the Transport is
// closed; the messages may still be published then. If ctx carries a transaction of this
// Transport, ms are published with its commit.
func (t *Transport) Publish(ctx context.Context, ms ...flow.Message) error {
	if !t.ready.Load() {
		return ErrClosed
	}
	out := make([]output, len(ms))
	for i, m := range ms {
		if !t.declaredTopic(m.Topic).HasLog() {
			return fmt.Errorf("kafka: messages of topic %s are emitted by handlers alone", m.Topic)
		}
		out[i] = outputs{t}.Output(m)
	}
	return t.publish(ctx, out)
}

// Publishes reports whether topic has a log, which other programs may read.
func (t *Transport) Publishes(topic string) bool {
	return t.isKnownTopic(topic) && t.declaredTopic(topic).HasLog()
}

// Unsynced returns t: every publication over Kafka is durable.
func (t *Transport) Unsynced() flow.Publisher { return t }

// publish adds out to the transaction of ctx, or publishes it at once if there is none.
func (t *Transport) publish(ctx context.Context, out []output) error {
	if len(out) == 0 {
		return nil
	}
	if joined, err := engine.Join(ctx, outputs{t}, out); joined {
		return err
	}
	if t.ctx.Err() != nil {
		return ErrClosed
	}
	if err := t.room.Wait(ctx, t.ctx.Done(), ErrClosed); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(ErrClosed) })()
	for {
		err := t.ensureTopics(ctx, out)
		if err == nil {
			err = t.send(ctx, producerMessages(t.cfg.Prefix, 0, out, nil))
		} else if !client.Away(err) {
			return err
		}
		if err == nil || ctx.Err() != nil || client.Lasting(err) {
			return err
		}
		// Sarama gives up after a minute.
		if err := client.Sleep(ctx, retryPause); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
	}
}

// send publishes ms outside of the transactions of the lanes: one message without a
// transaction, several in a transaction of their own. When ctx is done it returns the cause;
// since Sarama cannot be interrupted, the messages may still be published then.
func (t *Transport) send(ctx context.Context, ms []*sarama.ProducerMessage) error {
	err := client.Run(ctx, func() error { return t.sendNow(ctx, ms) })
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("publishing: %w", context.Cause(ctx))
	}
	return err
}

func (t *Transport) sendNow(ctx context.Context, ms []*sarama.ProducerMessage) error {
	t.publishing.Add(1)
	defer t.publishing.Add(-1)
	var err error
	if len(ms) == 1 && ms[0].ByteSize(2) < client.MaxMessage {
		err = t.producer.Send(ms)
	} else {
		err = t.txnPublisher.send(ctx, ms)
	}
	if err != nil && ctx.Err() != nil {
		return err // the caller gave up, or the Transport is closed
	}
	if err != nil {
		err = client.SendError(err)
		t.reportFailure("publishing failed", err)
		return fmt.Errorf("kafka: publishing: %w", err)
	}
	t.recordWritten(ms)
	return nil
}

// txnPublisher publishes several messages in one transaction.
type txnPublisher struct {
	transport *Transport
	mu        sync.Mutex
	producer  *client.Producer
}

func (g *txnPublisher) send(ctx context.Context, ms []*sarama.ProducerMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil { // the caller gave up
		return context.Cause(ctx)
	}
	if g.producer == nil {
		// A random transactional ID fences no other producer.
		p, err := g.transport.cfg.adminConfig().TxnProducer(ctx, g.transport.cfg.Group+"-"+rand.Text())
		if err != nil {
			return err
		}
		g.producer = p
	}
	if err := g.producer.Transact(ms); err != nil {
		p := g.producer
		g.producer = nil
		go func() { _ = p.Close() }()
		return err
	}
	return nil
}

func (g *txnPublisher) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.producer == nil {
		return nil
	}
	return g.producer.Close()
}

// recordWritten records the new ends of the partitions to which ms were written.
func (t *Transport) recordWritten(ms []*sarama.ProducerMessage) {
	t.writtenMu.Lock()
	defer t.writtenMu.Unlock()
	for _, m := range ms {
		at := topicLane{m.Topic, int(m.Partition)}
		t.writtenEnds[at] = max(t.writtenEnds[at], m.Offset+1)
	}
	t.activity.Add(1)
}

// writtenEnd is the offset after the last record that this process wrote to a lane of topic.
func (t *Transport) writtenEnd(topic string, lane int) int64 {
	t.writtenMu.Lock()
	defer t.writtenMu.Unlock()
	return t.writtenEnds[topicLane{t.cfg.Prefix + topic, lane}]
}

type topicLane struct {
	topic string
	lane  int
}

// publishInBackground publishes out in the background, and retries until the Transport is closed. The messages may
// be lost: their sender asks again.
func (t *Transport) publishInBackground(out []output) {
	t.publishing.Add(1)
	go func() {
		defer t.publishing.Add(-1)
		for len(out) > 0 {
			ms := producerMessages(t.cfg.Prefix, 0, out, nil)
			err := client.Run(t.workCtx, func() error { return t.producer.Send(ms) })
			if err == nil {
				t.recordWritten(ms)
				return
			}
			if t.workCtx.Err() != nil {
				return
			}
			t.reportFailure("publishing a request failed; retrying", client.SendError(err))
			out = retryable(out, ms, err)
			_ = client.Sleep(t.workCtx, reopenPause) // the next attempt fails when workCtx is done
		}
	}()
}

// retryable returns the outputs whose records in ms failed for a reason that may pass. Without a
// retry the work that they ask for would wait for minutes.
func retryable(out []output, ms []*sarama.ProducerMessage, err error) (again []output) {
	all, _ := errors.AsType[sarama.ProducerErrors](err)
	failed := make(map[*sarama.ProducerMessage]bool, len(all))
	for _, e := range all {
		_, config := errors.AsType[sarama.ConfigurationError](e.Err)
		failed[e.Msg] = !config && !errors.Is(e.Err, sarama.ErrMessageSizeTooLarge)
	}
	for i, m := range ms {
		if failed[m] {
			again = append(again, out[i])
		}
	}
	return again
}

// Publisher returns a Watermill publisher. Messages whose context carries a transaction of this
// Transport are published with its commit, others at once, all messages of a call or none. Its
// Close does not affect other publishers.
func (t *Transport) Publisher() message.Publisher {
	return engine.NewPublisher(func(topic string, msgs []*message.Message) error {
		if !t.ready.Load() {
			return ErrClosed
		}
		var out []output
		for _, m := range msgs {
			out = append(out, outputOfWatermill(topic, m.UUID, m.Metadata, m.Payload, t.lanes))
		}
		return t.publish(msgs[0].Context(), out)
	}, ErrClosed)
}

var _ flow.Publisher = (*Transport)(nil)

// ErrClosed is returned by a Transport that is closed or was not started.
var ErrClosed = client.ErrClosed
