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

// Once returns the configuration base for a client that asks each broker only once.
func Once(base *sarama.Config) *sarama.Config {
	once := *base
	once.Metadata.Retry.Max = 0
	once.Net.ReadTimeout = answerTimeout
	return &once
}

// Do returns the result of f, or the cause of ctx as soon as ctx is done: calls of Sarama cannot
// be interrupted. A value that f returns after that is passed to drop, which may be nil.
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

// Sleep waits for d. If ctx is done before, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Within returns the result of f, or nil if f takes longer than limit. In that case f continues in
// the background: closing a connection may wait for unreachable brokers.
func Within(limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := Run(ctx, f); ctx.Err() == nil {
		return err
	}
	return nil
}

// Away reports whether err means that brokers are not available, so that a retry may help.
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

// Lasting reports whether err, from publishing, is one that retries do not fix.
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

// OpenPartition starts reading a partition at offset from. It gives up when ctx is done.
func OpenPartition(ctx context.Context, c sarama.Consumer, topic string, lane int, from int64) (sarama.PartitionConsumer, error) {
	return Do(ctx, func() (sarama.PartitionConsumer, error) {
		return c.ConsumePartition(topic, int32(lane), from)
	}, ClosePartition)
}

// closeTimeout is how long ClosePartition waits.
const closeTimeout = time.Second

// ClosePartition closes pc and waits for that, since a partition can have only one reader. It
// waits for closeTimeout at most, because Sarama may look for brokers first.
func ClosePartition(pc sarama.PartitionConsumer) { _ = Within(closeTimeout, pc.Close) }
