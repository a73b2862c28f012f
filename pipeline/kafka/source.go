package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Limits of reading a partition ahead. A partition that was paused is read again with the next fetch
// of its group. Where the other partitions have no records, that begins only when the brokers end
// the present one after Consumer.MaxWaitTime, 100 ms. What was read ahead should last as long.
const (
	maxReadAheadMessages = 512
	maxReadAheadBytes    = 2 << 20
	// reopenPause is the pause before a failed read is retried.
	reopenPause = 500 * time.Millisecond
	// quietPeriod is how long a partition must be without records to count as read to its end: the
	// end that the brokers report may lie after control records.
	quietPeriod = 300 * time.Millisecond
)

// source reads a partition ahead. Sarama stops reading all partitions while the buffer of one is
// full; therefore source empties that buffer at once, and pauses the partition instead.
type source struct {
	transport *Transport
	consumer  consumer
	lane      int
	signal    chan struct{} // wakes the runner
	cancel    context.CancelFunc
	done      chan struct{}

	mu         sync.Mutex
	records    []*sarama.ConsumerMessage
	bytes      int
	next       int64
	reader     sarama.PartitionConsumer
	paused     bool
	lastRecord time.Time // of the last record, or when reading began
}

// newSource reads the partition of who's topic in lane from offset from on.
func newSource(t *Transport, who consumer, lane int, from int64, signal chan struct{}) *source {
	ctx, cancel := context.WithCancel(context.Background())
	s := &source{transport: t, consumer: who, lane: lane, next: from, signal: signal, cancel: cancel, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

// close stops reading.
func (s *source) close() {
	s.cancel()
	<-s.done
}

func (s *source) run(ctx context.Context) {
	defer close(s.done)
	for ctx.Err() == nil {
		if err := s.readPartition(ctx); err != nil && ctx.Err() == nil {
			s.transport.reportFailure("reading topics failed; retrying", err)
		}
		_ = client.Sleep(ctx, reopenPause) // the loop ends with ctx
	}
}

// readPartition reads until ctx is done or reading fails.
func (s *source) readPartition(ctx context.Context) error {
	s.mu.Lock()
	from := s.next
	s.mu.Unlock()
	pc, _, err := s.transport.openPartition(ctx, s.consumer, s.lane, from, s.resumeOffset)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.reader, s.paused, s.lastRecord = pc, false, time.Now()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.reader = nil
		s.mu.Unlock()
		client.ClosePartition(pc)
	}()
	for {
		select {
		case m, ok := <-pc.Messages():
			if !ok {
				return nil
			}
			s.addRecord(m)
		case err, ok := <-pc.Errors():
			if !ok {
				return nil
			}
			s.transport.reportFailure("reading topics failed; retrying", err.Err)
		case <-ctx.Done():
			return nil
		}
	}
}

// resumeOffset returns the offset to continue with in a partition without a record at offset from.
func (s *source) resumeOffset(ctx context.Context, from int64) (int64, error) {
	end, err := client.Do(ctx, func() (int64, error) {
		return s.transport.client.GetOffset(s.transport.cfg.Prefix+s.consumer.Topic, int32(s.lane), sarama.OffsetNewest)
	}, nil)
	if err != nil {
		return 0, err
	}
	log := s.transport.log.With("topic", s.consumer.Topic, "group", s.consumer.Group, "lane", s.lane, "offset", from)
	if from > end {
		log.Error("the brokers lost records that were already handled; continuing with new ones: check whether a leader was elected that was not in sync", "end", end)
		return end, nil
	}
	log.Warn("records were deleted before they were handled; continuing with the oldest: raise the retention of the topic")
	return sarama.OffsetOldest, nil
}

func (s *source) addRecord(m *sarama.ConsumerMessage) {
	s.mu.Lock()
	s.records = append(s.records, m)
	s.bytes += len(m.Value)
	s.next, s.lastRecord = m.Offset+1, time.Now()
	if !s.paused && (len(s.records) >= maxReadAheadMessages || s.bytes >= maxReadAheadBytes) {
		s.reader.Pause()
		s.paused = true
	}
	s.mu.Unlock()
	engine.Notify(s.signal)
}

// peek returns the next record, or nil.
func (s *source) peek() *sarama.ConsumerMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == 0 {
		return nil
	}
	return s.records[0]
}

// pop removes the next record.
func (s *source) pop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= len(s.records[0].Value)
	s.records[0] = nil
	s.records = s.records[1:]
	if s.paused && s.reader != nil && len(s.records) < maxReadAheadMessages/2 && s.bytes < maxReadAheadBytes/2 {
		s.reader.Resume()
		s.paused = false
	}
}

// isAtEnd reports whether the partition was read to its end, as far as is known.
func (s *source) isAtEnd() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil || len(s.records) > 0 {
		return false
	}
	end := s.reader.HighWaterMarkOffset()
	return end > 0 && s.next >= end || time.Since(s.lastRecord) > quietPeriod
}

// highWaterMark is the last known end of the partition.
func (s *source) highWaterMark() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil {
		return 0
	}
	return s.reader.HighWaterMarkOffset()
}

// openPartition starts reading the partition of who's topic in lane at offset from. If there is no record at that
// offset, it starts at the one that resume returns for it. At is where it starts.
func (t *Transport) openPartition(ctx context.Context, who consumer, lane int, from int64, resume func(context.Context, int64) (int64, error)) (pc sarama.PartitionConsumer, at int64, err error) {
	c, err := client.Do(ctx, func() (sarama.Consumer, error) { return t.consumerFor(who.Group) }, nil)
	if err != nil {
		return nil, 0, err
	}
	topic := t.cfg.Prefix + who.Topic
	pc, err = client.OpenPartition(ctx, c, topic, lane, from)
	if errors.Is(err, sarama.ErrOffsetOutOfRange) {
		if from, err = resume(ctx, from); err != nil {
			return nil, 0, err
		}
		pc, err = client.OpenPartition(ctx, c, topic, lane, from)
	}
	return pc, from, err
}

// consumerFor returns the consumer that reads topics for group. A consumer of Sarama can read a partition only
// once, and fetches all its partitions over one connection. It may wait for brokers.
func (t *Transport) consumerFor(group string) (sarama.Consumer, error) {
	t.consumerMu.Lock()
	defer t.consumerMu.Unlock()
	t.mu.Lock()
	r := t.consumers[group]
	t.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r, err := sarama.NewConsumer(t.cfg.Brokers, t.saramaConfig)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.workCtx.Err() != nil {
		return nil, errors.Join(ErrClosed, r.Close())
	}
	t.consumers[group] = r
	return r, nil
}

// closeConsumers closes the consumers. There will be no others, since workCtx is done.
func (t *Transport) closeConsumers() error {
	t.mu.Lock()
	all := t.consumers
	t.consumers = nil
	t.mu.Unlock()
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Tail delivers what any process publishes to topic from now on, in order within each lane. The
// channel is closed when ctx is done. Messages that were published while the brokers were
// unreachable may be missing.
func (t *Transport) Tail(ctx context.Context, topic string) (<-chan flow.Message, error) {
	if t.ctx.Err() != nil || !t.ready.Load() {
		return nil, ErrClosed
	}
	if err := t.ensureTopic(ctx, topic); err != nil {
		return nil, err
	}
	c, err := retryWhileAway(ctx, t, func() (sarama.Consumer, error) { return sarama.NewConsumer(t.cfg.Brokers, t.saramaConfig) })
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	partitions, err := retryWhileAway(ctx, t, func() ([]int32, error) { return c.Partitions(t.cfg.Prefix + topic) })
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", errors.Join(err, c.Close()))
	}
	out := make(chan flow.Message)
	ctx, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for _, partition := range partitions {
		pc, err := retryWhileAway(ctx, t, func() (sarama.PartitionConsumer, error) {
			return c.ConsumePartition(t.cfg.Prefix+topic, partition, sarama.OffsetNewest)
		})
		if err != nil {
			stop()
			readers.Wait()
			return nil, fmt.Errorf("kafka: %w", errors.Join(err, c.Close()))
		}
		readers.Go(func() { t.forwardMessages(ctx, pc, topic, out) })
	}
	go func() {
		readers.Wait()
		stop()
		close(out)
		_ = c.Close()
	}()
	return out, nil
}

// forwardMessages forwards the messages of pc until ctx is done.
func (t *Transport) forwardMessages(ctx context.Context, pc sarama.PartitionConsumer, topic string, out chan<- flow.Message) {
	errs := pc.Errors()
	defer client.ClosePartition(pc)
	for {
		select {
		case r, ok := <-pc.Messages():
			if !ok {
				return
			}
			_, meta, body := decodeRecord(r)
			m, err := flow.FromMetadata(meta, body)
			if err != nil {
				continue // not one of ours
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
