package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"golang.org/x/sync/semaphore"
)

// openTimeout is how long connecting may take, and closeTimeout how long Close waits.
const (
	openTimeout  = 30 * time.Second
	closeTimeout = 5 * time.Second
)

var errOpenTimeout = errors.New("kafka: the brokers did not answer within " + openTimeout.String())

// connection is a publisher with its connections to the brokers.
type connection struct {
	publisher *watermillkafka.Publisher
	// inFlight has a slot for each record in flight.
	inFlight *semaphore.Weighted
	// users counts what uses publisher, which must not be closed before. It grows only while the connection is current,
	// under Sink.mu, or where it is not zero.
	users sync.WaitGroup
}

// acquire returns the current connection. It connects first if there is none. The caller ends with users.Done.
func (s *Sink) acquire(ctx context.Context) (*connection, error) {
	for {
		s.mu.Lock()
		c := s.current
		if c != nil {
			c.users.Add(1)
		}
		s.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case made := <-s.connecting.DoChan("", s.connect):
			if made.Err != nil {
				return nil, made.Err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka: connecting to the brokers: %w", ctx.Err())
		}
	}
}

// connect makes the current connection. Only the context of the sink ends it, since several deliveries may wait for it.
func (s *Sink) connect() (any, error) {
	publisher, err := s.newPublisher()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		if err == nil {
			_ = publisher.Close() // it published nothing
		}
		return nil, errClosed
	}
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	s.current = &connection{publisher: publisher, inFlight: semaphore.NewWeighted(maxInFlight)}
	return nil, nil
}

// newPublisher asks the brokers whether the topic exists, which says what is wrong in words for the operator, and
// connects to them.
func (s *Sink) newPublisher() (*watermillkafka.Publisher, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, openTimeout, errOpenTimeout)
	defer cancel()
	client, err := s.cfg.clusterConfig().Connect(ctx, s.producerConfig)
	if err != nil {
		return nil, err
	}
	_, err = client.Partitions(s.cfg.Topic)
	_ = client.Close() // it has answered
	if err != nil {
		return nil, s.openError(err)
	}
	publisher, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{
		Brokers: s.cfg.Brokers, Marshaler: marshaler{s.cfg.MaxMessageBytes}, OverwriteSaramaConfig: s.producerConfig,
	}, nil)
	if err != nil {
		return nil, s.openError(err)
	}
	return publisher, nil
}

// openError explains an err that occurred before anything was written.
func (s *Sink) openError(err error) error {
	if known := s.knownError(err); known != nil {
		return known
	}
	return fmt.Errorf("kafka: topic %s: %s", s.cfg.Topic, s.cfg.clusterConfig().Reason(err))
}

// retire closes c, if it is current, once nothing uses it.
func (s *Sink) retire(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil || s.current != c {
		return
	}
	s.current = nil
	go func() {
		defer s.open.Done()
		c.users.Wait()
		_ = c.publisher.Close() // what was published has its result
	}()
}

// Close closes the connections after the records in flight have been written, and waits up to
// closeTimeout for that. It may be called twice.
func (s *Sink) Close() error {
	s.cancel()
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	s.retire(c)
	closed := make(chan struct{})
	go func() {
		s.open.Wait()
		close(closed)
	}()
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	select {
	case <-closed:
		return nil
	case <-limit.C:
		return errors.New("kafka: the brokers did not take within " + closeTimeout.String() + " what was being written")
	}
}
