// Package client wraps Sarama's clients: it interrupts calls that take no context, closes
// producers and partition readers safely, and publishes records in one transaction.
package client

import (
	"context"
	"time"

	"github.com/IBM/sarama"
)

// answerTimeout is how long a client of Once waits for an answer.
const answerTimeout = 10 * time.Second

// Once returns base for a client that asks each broker once.
func Once(base *sarama.Config) *sarama.Config {
	once := *base
	once.Metadata.Retry.Max = 0
	once.Net.ReadTimeout = answerTimeout
	return &once
}

// Do returns what f returns, or the cause of ctx as soon as ctx is done: calls of Sarama cannot
// be interrupted. A value that f returns after that goes to drop, which may be nil.
func Do[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
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

// Within returns what f returns, or nil if f takes longer than limit. Then f goes on by itself:
// closing a connection may wait for brokers that are away.
func Within(limit time.Duration, f func() error) error {
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
