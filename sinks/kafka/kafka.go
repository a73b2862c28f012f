package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
)

// Sink writes notifications to one topic. It is safe for concurrent use.
type Sink struct {
	c    Config
	conf *sarama.Config
	// room holds one for each record that is being sent; one that is sent alone takes it all.
	room chan struct{}
	// alone is held by what takes all of room.
	alone chan struct{}
	// life ends with Close.
	life context.Context
	end  context.CancelFunc

	mu sync.Mutex
	// current is the producer in use, and opening the one that is being made; nil: none.
	current *producer
	opening *opening
	// open are all producers that have not ended.
	open map[*producer]struct{}
}

var (
	_ pipeline.Sink = (*Sink)(nil)
	_ io.Closer     = (*Sink)(nil)
)

var errClosed = errors.New("kafka: the sink is closed")

func newSink(c Config, conf *sarama.Config) *Sink {
	s := &Sink{
		c: c, conf: conf, open: make(map[*producer]struct{}),
		room: make(chan struct{}, allRoom), alone: make(chan struct{}, 1),
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Deliver writes n to the topic and returns nil once all in-sync replicas have it.
func (s *Sink) Deliver(ctx context.Context, n pipeline.Notification) error {
	m, err := s.record(ctx, n)
	if err != nil {
		return err
	}
	// Version 2 is the format of records with headers.
	if size := m.ByteSize(2); size > s.c.MaxMessageBytes {
		return pipeline.Refused(fmt.Errorf("kafka: the record has %d bytes: raise max_message_bytes of the sink, which is %d, and max.message.bytes of topic %s",
			size, s.c.MaxMessageBytes, s.c.Topic))
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	p, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	broken, err := s.together(ctx, p, m)
	s.release(p, broken)
	return err
}

// atOnce is how many records an attempt sends at the same time. There is room for more, so that
// nobody waits for it but behind a record that is sent alone.
const (
	atOnce  = 100
	allRoom = 1000
)

// Batch says that an attempt delivers what waits, all at the same time: the producer sends it
// together.
func (s *Sink) Batch() (notifications, together int) { return atOnce, atOnce }

// together sends m with what is sent at the same time. The brokers' limit is one of all that
// comes together: where they refuse that, m is sent once more, alone.
func (s *Sink) together(ctx context.Context, p *producer, m *sarama.ProducerMessage) (broken bool, err error) {
	if err := take(ctx, s.room, 1); err != nil {
		return false, err
	}
	broken, err = s.send(ctx, p, m)
	give(s.room, 1)
	if class, _ := pipeline.ClassOf(err); class != pipeline.ClassRefused {
		return broken, err
	}
	if err := take(ctx, s.alone, 1); err != nil {
		return false, err
	}
	defer give(s.alone, 1)
	if err := take(ctx, s.room, allRoom); err != nil {
		return false, err
	}
	defer give(s.room, allRoom)
	return s.send(ctx, p, m)
}

// take takes n places of room, or none where ctx is done before.
func take(ctx context.Context, room chan struct{}, n int) error {
	for i := range n {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			give(room, i)
			return fmt.Errorf("kafka: the record was not sent: %w", ctx.Err())
		}
	}
	return nil
}

// give gives n places of room back.
func give(room chan struct{}, n int) {
	for range n {
		<-room
	}
}

// send hands m to p and waits for what became of it. broken says that p is of no use.
func (s *Sink) send(ctx context.Context, p *producer, m *sarama.ProducerMessage) (broken bool, err error) {
	done := make(chan error, 1)
	m.Metadata = done
	select {
	case p.async.Input() <- m:
	case <-ctx.Done():
		return ctx.Err() == context.DeadlineExceeded, fmt.Errorf("kafka: the record was not sent: %w", ctx.Err())
	}
	select {
	case err := <-done:
		return s.judge(err, m)
	case <-ctx.Done():
		return ctx.Err() == context.DeadlineExceeded, pipeline.Ambiguous(fmt.Errorf("kafka: no answer from the brokers: %w", ctx.Err()))
	}
}

// judge says what err, with which the producer ended m, means.
func (s *Sink) judge(err error, m *sarama.ProducerMessage) (broken bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, sarama.ErrMessageSizeTooLarge):
		size := m.ByteSize(2)
		return false, pipeline.Refused(fmt.Errorf("kafka: topic %s does not take a record of %d bytes: raise its max.message.bytes; run: %s",
			s.c.Topic, size, s.c.brokers().AlterCommand(s.c.Topic, "max.message.bytes", fmt.Sprint(max(2*size, defaultMessageBytes)))))
	}
	if known := s.known(err); known != nil {
		return true, known
	}
	reason := s.c.brokers().Reason(err)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		reason = "the connection to the brokers broke" // it was there: nothing is wrong with the settings
	}
	return true, pipeline.Ambiguous(fmt.Errorf("kafka: topic %s: %s", s.c.Topic, reason))
}

// known explains an err with which nothing was written, and is nil for all others.
func (s *Sink) known(err error) error {
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return fmt.Errorf("kafka: there is no topic %s; make it: %s", s.c.Topic, s.c.brokers().CreateCommand(s.c.Topic))
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		return fmt.Errorf("kafka: we may not write to topic %s: allow Write and Describe on it", s.c.Topic)
	case errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return errors.New("kafka: we may not write with an idempotent producer: allow IdempotentWrite on the cluster")
	case errors.Is(err, sarama.ErrNotEnoughReplicas):
		return fmt.Errorf("kafka: topic %s has fewer replicas in sync than its min.insync.replicas", s.c.Topic)
	}
	return nil
}
