package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/store"
)

// Publish puts ms into their topics, all of them or none, and returns once all brokers that
// keep them have them. It blocks while brokers are away, until ctx is done or the Transport
// is closed; they may be published nevertheless then. Where ctx carries a transaction of this
// Transport, ms are published with its commit.
func (t *Transport) Publish(ctx context.Context, ms ...flow.Message) error {
	if !t.ready.Load() {
		return ErrClosed
	}
	out := make([]output, len(ms))
	for i, m := range ms {
		out[i] = outputOf(m, t.lanes)
	}
	return t.publish(ctx, out)
}

// Unsynced returns t: what it publishes is not lost either.
func (t *Transport) Unsynced() flow.Publisher { return t }

// publish collects out in the transaction of ctx, or publishes it.
func (t *Transport) publish(ctx context.Context, out []output) error {
	if len(out) == 0 {
		return nil
	}
	if p, ok := flow.TxFrom(ctx); ok {
		if x, ok := p.(*tx); ok && x.lease.t == t {
			if !x.collect(out...) {
				return errOver
			}
			return nil
		}
	}
	if t.ctx.Err() != nil {
		return ErrClosed
	}
	if err := t.room.Wait(ctx, t.ctx.Done()); errors.Is(err, store.ErrClosed) {
		return ErrClosed
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(ErrClosed) })()
	for {
		err := t.ensureAll(ctx, out)
		if err == nil {
			err = t.send(ctx, produced(t.cfg.Prefix, 0, out, nil))
		} else if !client.Away(err) {
			return err
		}
		if err == nil || ctx.Err() != nil || client.Lasting(err) {
			return err
		}
		// sarama gives up after a minute. What was seen may not be there at the next look.
		select {
		case <-ctx.Done():
			return fmt.Errorf("publishing: %w", context.Cause(ctx))
		case <-time.After(probeEvery):
		}
	}
}

// send publishes ms outside of any lane's transaction: one message as it is, several in a
// transaction of their own. It returns the cause of ctx when that is done; they may be
// published nevertheless then, as sarama cannot be interrupted.
func (t *Transport) send(ctx context.Context, ms []*sarama.ProducerMessage) error {
	err := client.Run(ctx, func() error { return t.sendAll(ctx, ms) })
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("publishing: %w", context.Cause(ctx))
	}
	return err
}

func (t *Transport) sendAll(ctx context.Context, ms []*sarama.ProducerMessage) error {
	t.sending.Add(1)
	defer t.sending.Add(-1)
	var err error
	if len(ms) == 1 && ms[0].ByteSize(2) < client.MaxMessage {
		_, _, err = t.plain.SendMessage(ms[0])
	} else {
		err = t.together.send(ctx, ms)
	}
	if err != nil && ctx.Err() != nil {
		return err // it was given up, or the Transport is closed
	}
	if err != nil {
		err = client.SendError(err)
		t.outage("publishing failed", err)
		return fmt.Errorf("kafka: publishing: %w", err)
	}
	t.wrote(ms)
	return nil
}

// together publishes several messages in one transaction.
type together struct {
	t  *Transport
	mu sync.Mutex
	p  sarama.SyncProducer
}

func (g *together) send(ctx context.Context, ms []*sarama.ProducerMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil { // nobody waits for it any more
		return context.Cause(ctx)
	}
	if g.p == nil {
		// The name is of this process alone: nobody is to be fenced.
		c, err := g.t.cfg.admin().TxnConfig(g.t.cfg.Group + "-" + rand.Text())
		if err != nil {
			return err
		}
		p, err := client.NewProducer(g.t.cfg.Brokers, c)
		if err != nil {
			return err
		}
		g.p = p
	}
	if err := client.Transact(g.p, ms); err != nil {
		p := g.p
		g.p = nil
		go func() { _ = p.Close() }()
		return err
	}
	return nil
}

func (g *together) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.p == nil {
		return nil
	}
	return g.p.Close()
}

// wrote notes where the topics end.
func (t *Transport) wrote(ms []*sarama.ProducerMessage) {
	t.headMu.Lock()
	defer t.headMu.Unlock()
	for _, m := range ms {
		at := topicLane{m.Topic, int(m.Partition)}
		t.heads[at] = max(t.heads[at], m.Offset+1)
	}
	t.activity.Add(1)
}

// head is the offset behind what this process wrote last to a topic's lane.
func (t *Transport) head(topic string, lane int) int64 {
	t.headMu.Lock()
	defer t.headMu.Unlock()
	return t.heads[topicLane{t.cfg.Prefix + topic, lane}]
}

type topicLane struct {
	topic string
	lane  int
}

// hint publishes out soon: what may be lost, since it is asked for again.
func (t *Transport) hint(out []output) {
	t.hintMu.Lock()
	t.hints = append(t.hints, out...)
	t.hintMu.Unlock()
	notify(t.hintSignal)
}

// hintLoop publishes what hint got until the Transport is closed.
func (t *Transport) hintLoop() {
	defer close(t.hinted)
	for {
		select {
		case <-t.hintSignal:
		case <-t.life.Done():
			return
		}
		t.hintMu.Lock()
		out := t.hints
		t.hintMu.Unlock()
		ms := produced(t.cfg.Prefix, 0, out, nil)
		if len(ms) == 0 {
			continue
		}
		err := client.Run(t.life, func() error { return t.plain.SendMessages(ms) })
		if t.life.Err() != nil {
			return
		}
		var again []output
		if err != nil {
			t.outage("asking for checks failed; it is done again", client.SendError(err))
			again = unsent(out, ms, err)
			select {
			case <-time.After(reopenAfter):
			case <-t.life.Done():
				return
			}
		} else {
			t.wrote(ms)
		}
		t.hintMu.Lock()
		t.hints = append(again, t.hints[len(out):]...)
		if len(t.hints) > 0 {
			notify(t.hintSignal)
		}
		t.hintMu.Unlock()
	}
}

// unsent returns those of out that failed, as ms, for a reason that may pass: who waits for
// what is asked would wait for minutes until it asks again.
func unsent(out []output, ms []*sarama.ProducerMessage, err error) (again []output) {
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

// Publisher returns a Watermill publisher. Messages whose context carries a transaction
// of this Transport are published with its commit; others at once, those of one call
// together. Its Close is private to it.
func (t *Transport) Publisher() message.Publisher {
	return mill.NewPublisher(func(topic string, msgs []*message.Message) error {
		if !t.ready.Load() {
			return ErrClosed
		}
		var out []output
		for _, m := range msgs {
			out = append(out, outputOfWatermill(topic, m, t.lanes))
		}
		return t.publish(msgs[0].Context(), out)
	}, ErrClosed)
}

var _ flow.Publisher = (*Transport)(nil)

// ErrClosed is what a Transport that is closed, or was not started, returns.
var ErrClosed = client.ErrClosed
