// Package client wraps Sarama's clients: it interrupts calls that take no context, closes
// producers and partition readers safely, and publishes records in one transaction.
package client

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
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

// Run is Do for an f that returns only an error.
func Run(ctx context.Context, f func() error) error {
	_, err := Do(ctx, func() (struct{}, error) { return struct{}{}, f() }, nil)
	return err
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

// Away reports whether err comes from brokers that do not answer, or not yet: a retry may help.
func Away(err error) bool {
	for _, target := range []error{
		sarama.ErrOutOfBrokers, sarama.ErrControllerNotAvailable, sarama.ErrNotConnected, sarama.ErrBrokerNotFound,
		sarama.ErrRequestTimedOut, sarama.ErrBrokerNotAvailable, sarama.ErrLeaderNotAvailable, sarama.ErrNotController,
		sarama.ErrNotLeaderForPartition, sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrNotCoordinatorForConsumer,
		sarama.ErrOffsetsLoadInProgress, sarama.ErrNetworkException, io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// Lasting reports whether publishing failed for a reason that no retry mends.
func Lasting(err error) bool {
	for _, never := range []error{
		sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrInvalidRecord, sarama.ErrPolicyViolation,
		sarama.ErrTopicAuthorizationFailed, sarama.ErrTransactionalIDAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrInvalidTopic, sarama.ErrUnknownTopicOrPartition, ErrClosed,
	} {
		if errors.Is(err, never) {
			return true
		}
	}
	config, ok := errors.AsType[sarama.ConfigurationError](err) // also of messages that are too large
	return ok && config != ""
}

// SendError returns the first of the errors in err.
func SendError(err error) error {
	if all, ok := errors.AsType[sarama.ProducerErrors](err); ok && len(all) > 0 {
		return all[0].Err
	}
	return err
}

// OpenPartition begins to read a partition at offset from, unless ctx is done before that.
func OpenPartition(ctx context.Context, c sarama.Consumer, topic string, lane int, from int64) (sarama.PartitionConsumer, error) {
	return Do(ctx, func() (sarama.PartitionConsumer, error) {
		return c.ConsumePartition(topic, int32(lane), from)
	}, ClosePartition)
}

// closeFor is how long ClosePartition waits.
const closeFor = time.Second

// ClosePartition ends pc, and waits for that, since a partition is read once at a time. It
// does not wait long: sarama looks for brokers first.
func ClosePartition(pc sarama.PartitionConsumer) {
	pc.AsyncClose()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range pc.Errors() { // closed behind Messages, which sarama empties itself
		}
	}()
	go func() {
		for range pc.Messages() {
		}
	}()
	timer := time.NewTimer(closeFor)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
