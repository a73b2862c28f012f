package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// openTimeout is how long connecting may take, and closeTimeout how long Close waits.
const (
	openTimeout  = 30 * time.Second
	closeTimeout = 5 * time.Second
)

var errOpenTimeout = errors.New("kafka: the brokers did not answer within " + openTimeout.String())

// producer is a sarama producer with its connections. A delivery acquires it before it writes,
// since a closed sarama producer panics when it gets a message.
type producer struct {
	client sarama.Client
	async  sarama.AsyncProducer
	// users counts the deliveries that hold it; a retired producer gets no new ones. Sink.mu
	// guards both.
	users   int
	retired bool
	// closed is closed when its goroutines and connections have ended.
	closed chan struct{}
}

// connectAttempt is an attempt to make a producer. err is set when done is closed.
type connectAttempt struct {
	done chan struct{}
	err  error
}

// acquireProducer returns the producer. It connects first if there is none. The caller releases it.
func (s *Sink) acquireProducer(ctx context.Context) (*producer, error) {
	for {
		s.mu.Lock()
		if s.ctx.Err() != nil {
			s.mu.Unlock()
			return nil, errClosed
		}
		if p := s.producer; p != nil {
			p.users++
			s.mu.Unlock()
			return p, nil
		}
		o := s.connecting
		if o == nil {
			o = &connectAttempt{done: make(chan struct{})}
			s.connecting = o
			go s.connect(o)
		}
		s.mu.Unlock()
		select {
		case <-o.done:
			if o.err != nil {
				return nil, o.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka: connecting to the brokers: %w", ctx.Err())
		}
	}
}

// connect makes the producer for o. Only the context of the sink ends it, since
// several deliveries may wait for it.
func (s *Sink) connect(o *connectAttempt) {
	p, err := s.newProducer()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connecting, o.err = nil, err
	close(o.done)
	if err != nil {
		return
	}
	s.openProducers[p] = struct{}{}
	go s.deliverResults(p)
	if s.ctx.Err() != nil {
		p.retire()
		return
	}
	s.producer = p
}

func (s *Sink) newProducer() (*producer, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, openTimeout, errOpenTimeout)
	defer cancel()
	client, err := s.cfg.clusterConfig().Connect(ctx, s.producerConfig)
	if err != nil {
		if s.ctx.Err() != nil {
			return nil, errClosed
		}
		return nil, err
	}
	if _, err := client.Partitions(s.cfg.Topic); err != nil {
		return nil, s.openError(client, err)
	}
	async, err := sarama.NewAsyncProducerFromClient(client)
	if err != nil {
		return nil, s.openError(client, err)
	}
	return &producer{client: client, async: async, closed: make(chan struct{})}, nil
}

// openError explains an err that occurred before anything was written, and closes client.
func (s *Sink) openError(client sarama.Client, err error) error {
	_ = client.Close() // what went wrong is err
	if known := s.knownError(err); known != nil {
		return known
	}
	return fmt.Errorf("kafka: topic %s: %s", s.cfg.Topic, s.cfg.clusterConfig().Reason(err))
}

// deliverResults hands the result of each message to the delivery that waits for it, until p is closed.
func (s *Sink) deliverResults(p *producer) {
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		for e := range p.async.Errors() {
			e.Msg.Metadata.(chan error) <- e.Err
		}
	}()
	for m := range p.async.Successes() {
		m.Metadata.(chan error) <- nil
	}
	<-failed
	_ = p.client.Close() // it was given up
	s.mu.Lock()
	delete(s.openProducers, p)
	s.mu.Unlock()
	close(p.closed)
}

// releaseProducer gives p back. A broken producer is not used again: the next delivery connects again
// and reports the reason if that fails.
func (s *Sink) releaseProducer(p *producer, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.users--
	if broken && s.producer == p {
		s.producer = nil
		p.retired = true
	}
	p.closeIfUnused()
}

// retire closes p once no delivery uses it. Sink.mu is held.
func (p *producer) retire() {
	p.retired = true
	p.closeIfUnused()
}

// closeIfUnused starts to close p if it is retired and no delivery holds it. Sink.mu is held.
func (p *producer) closeIfUnused() {
	if p.retired && p.users == 0 {
		p.async.AsyncClose()
	}
}

// Close closes the connections after the records in flight have been written, and waits up to
// closeTimeout for that. It may be called twice.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.cancel()
	if s.producer != nil {
		s.producer.retire()
		s.producer = nil
	}
	var open []*producer
	for p := range s.openProducers {
		open = append(open, p)
	}
	s.mu.Unlock()
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	for _, p := range open {
		select {
		case <-p.closed:
		case <-limit.C:
			return errors.New("kafka: the brokers did not take within " + closeTimeout.String() + " what was being written")
		}
	}
	return nil
}
