package client

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/IBM/sarama"
)

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
