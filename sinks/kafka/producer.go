package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// openFor is how long connecting may take, and closeFor how long Close waits.
const (
	openFor  = 30 * time.Second
	closeFor = 5 * time.Second
)

var errSlow = errors.New("kafka: the brokers did not answer within " + openFor.String())

// producer is a sarama producer with its connections. A delivery acquires it before it writes,
// since a closed sarama producer panics when it gets a message.
type producer struct {
	client sarama.Client
	async  sarama.AsyncProducer
	// users counts the deliveries that hold it; a retired producer gets no new ones. Sink.mu
	// guards both.
	users   int
	retired bool
	// gone is closed when its goroutines and connections have ended.
	gone chan struct{}
}

// opening is a producer that is being made. err is set when done is closed.
type opening struct {
	done chan struct{}
	err  error
}

// acquire returns the producer. It connects first if there is none. The caller releases it.
func (s *Sink) acquire(ctx context.Context) (*producer, error) {
	for {
		s.mu.Lock()
		if s.life.Err() != nil {
			s.mu.Unlock()
			return nil, errClosed
		}
		if p := s.current; p != nil {
			p.users++
			s.mu.Unlock()
			return p, nil
		}
		o := s.opening
		if o == nil {
			o = &opening{done: make(chan struct{})}
			s.opening = o
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
func (s *Sink) connect(o *opening) {
	p, err := s.newProducer()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening, o.err = nil, err
	close(o.done)
	if err != nil {
		return
	}
	s.open[p] = struct{}{}
	go s.serve(p)
	if s.life.Err() != nil {
		p.retire()
		return
	}
	s.current = p
}

func (s *Sink) newProducer() (*producer, error) {
	ctx, cancel := context.WithTimeoutCause(s.life, openFor, errSlow)
	defer cancel()
	client, err := s.c.brokers().Connect(ctx, s.conf)
	if err != nil {
		if s.life.Err() != nil {
			return nil, errClosed
		}
		return nil, err
	}
	if _, err := client.Partitions(s.c.Topic); err != nil {
		return nil, s.unopened(client, err)
	}
	async, err := sarama.NewAsyncProducerFromClient(client)
	if err != nil {
		return nil, s.unopened(client, err)
	}
	return &producer{client: client, async: async, gone: make(chan struct{})}, nil
}

// unopened explains an err that occurred before anything was written, and closes client.
func (s *Sink) unopened(client sarama.Client, err error) error {
	_ = client.Close() // what went wrong is err
	if known := s.known(err); known != nil {
		return known
	}
	return fmt.Errorf("kafka: topic %s: %s", s.c.Topic, s.c.brokers().Reason(err))
}

// serve hands the result of each message to the delivery that waits for it, until p is closed.
func (s *Sink) serve(p *producer) {
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
	delete(s.open, p)
	s.mu.Unlock()
	close(p.gone)
}

// release gives p back. A broken producer is not used again: the next delivery connects again
// and reports the reason if that fails.
func (s *Sink) release(p *producer, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.users--
	if broken && s.current == p {
		s.current = nil
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
// closeFor for that. It may be called twice.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.end()
	if s.current != nil {
		s.current.retire()
		s.current = nil
	}
	var open []*producer
	for p := range s.open {
		open = append(open, p)
	}
	s.mu.Unlock()
	limit := time.NewTimer(closeFor)
	defer limit.Stop()
	for _, p := range open {
		select {
		case <-p.gone:
		case <-limit.C:
			return errors.New("kafka: the brokers did not take within " + closeFor.String() + " what was being written")
		}
	}
	return nil
}
