package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// probeEvery is how long connect rests between two attempts.
const probeEvery = 500 * time.Millisecond

// connect returns a client of the cluster. It waits for a broker until ctx
// is done, whose cause it then returns. Meanwhile waiting is told the present reason, and
// nil when it goes on. What waiting does not mend (a wrong password, a certificate that is
// not trusted) fails at once. c has its defaults; the caller closes the client.
func connect(ctx context.Context, c Config, log *slog.Logger, waiting func(reason error)) (sarama.Client, error) {
	base, err := c.sarama()
	if err != nil {
		return nil, err
	}
	if w := c.openPassword(); w != "" {
		log.Warn("kafka: " + w)
	}
	var since time.Time
	for {
		client, err := probe(ctx, c, base)
		if err == nil {
			if !since.IsZero() {
				log.Info("kafka: brokers answer, going on", "waited", c.Now().Sub(since).Round(time.Second))
			}
			waiting(nil)
			return client, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if fatal := refusal(c, err); fatal != nil {
			return nil, fatal
		}
		reason := unanswered(c, err)
		waiting(reason)
		if since.IsZero() {
			since = c.Now()
			log.Warn("kafka: " + reason.Error() + "; waiting")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

// probeTimeout is how long ask waits for an answer.
const probeTimeout = 10 * time.Second

// probe asks each broker once, and returns a client with all the patience of base once one
// has answered.
func probe(ctx context.Context, c Config, base *sarama.Config) (sarama.Client, error) {
	return abandonable(ctx, func() (sarama.Client, error) {
		if err := ask(c, base); err != nil {
			return nil, err
		}
		return sarama.NewClient(c.Brokers, base)
	}, func(client sarama.Client) { _ = client.Close() })
}

// ask asks each broker once, until one has answered.
func ask(c Config, base *sarama.Config) error {
	once := impatient(base)
	first, err := sarama.NewClient(c.Brokers, once)
	if err != nil {
		if cause := diagnose(c.Brokers, once); cause != nil {
			err = cause
		}
		return err
	}
	defer first.Close()
	return reach(first)
}

// impatient returns base for a client that asks once.
func impatient(base *sarama.Config) *sarama.Config {
	once := *base
	once.Metadata.Retry.Max = 0
	once.Net.ReadTimeout = probeTimeout
	return &once
}

// diagnose connects to each broker and returns why that fails, which a client does not
// always tell.
func diagnose(brokers []string, conf *sarama.Config) error {
	var errs []error
	for _, addr := range brokers {
		b := sarama.NewBroker(addr)
		if err := b.Open(conf); err != nil {
			return err
		}
		ok, err := b.Connected()
		if ok {
			_ = b.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reach connects to one of the brokers under the address that the cluster names. Those of
// the configuration may be others.
func reach(client sarama.Client) error {
	b, err := client.Controller()
	if err != nil {
		return err
	}
	_ = b.Open(client.Config()) // an error says that it is open
	if ok, err := b.Connected(); !ok {
		if err == nil {
			err = sarama.ErrNotConnected
		}
		return &advertised{addr: b.Addr(), err: err}
	}
	return nil
}

// advertised says that a broker does not answer under the address that the cluster names.
type advertised struct {
	addr string
	err  error
}

func (a *advertised) Error() string { return a.addr + ": " + a.err.Error() }
func (a *advertised) Unwrap() error { return a.err }

// abandonable returns what f returns, or the cause of ctx as soon as that is done: sarama
// cannot be interrupted. What f returns without an error after that goes to drop, which may
// be nil.
func abandonable[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		v, err := f()
		select {
		case done <- result{v, err}:
		case <-ctx.Done():
			if err == nil && drop != nil {
				drop(v)
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// patiently returns what f returns once the brokers are there for it: one that has just come
// back leads no partition for a moment. It tries until ctx is done, whose cause it then
// returns.
func patiently[T any](ctx context.Context, t *Transport, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !away(err) {
			return v, err
		}
		t.outage("the brokers do not serve yet; it is tried again", err)
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

// within returns what f returns, or nil if that takes longer than limit: then f goes on by
// itself, as what closes connections may while brokers are away.
func within(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return nil
	}
}

// unanswered says in plain words that no broker of c answers, and why.
func unanswered(c Config, err error) error {
	if a, ok := errors.AsType[*advertised](err); ok {
		return fmt.Errorf("the broker at %s, as the cluster names it, does not answer: %s", a.addr, plain(c, a.err))
	}
	return fmt.Errorf("no broker answers at %s: %s", strings.Join(c.Brokers, ", "), plain(c, err))
}
