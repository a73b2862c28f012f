package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// probeEvery is how long connect rests between two attempts.
const probeEvery = 500 * time.Millisecond

// connect returns a client of the cluster, made with base. It waits for a broker until ctx
// is done, whose cause it then returns. Meanwhile waiting is told the present reason, and
// nil when it goes on. What waiting does not mend (a wrong password, a certificate that is
// not trusted) fails at once. The caller closes the client.
func connect(ctx context.Context, c Config, base *sarama.Config, log *slog.Logger, waiting func(reason error)) (sarama.Client, error) {
	var told time.Time
	for {
		client, err := probe(ctx, c, base)
		if err == nil {
			if !told.IsZero() {
				log.Info("kafka: connected", "after", time.Since(told).Round(time.Second))
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
		reason := awayError(c.Brokers, err)
		waiting(reason)
		if told.IsZero() {
			told = time.Now()
			log.Warn("kafka: "+reason.Error()+"; waiting", "brokers", c.Brokers)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

// probe asks each of the brokers once. sarama cannot be interrupted, so that what it opens
// after ctx is done is closed behind the caller's back.
func probe(ctx context.Context, c Config, base *sarama.Config) (sarama.Client, error) {
	type result struct {
		client sarama.Client
		err    error
	}
	done := make(chan result)
	go func() {
		once := *base
		once.Metadata.Retry.Max = 0
		client, err := sarama.NewClient(c.Brokers, &once)
		if err == nil {
			if _, err = client.Controller(); err == nil {
				_ = client.Close()
				client, err = sarama.NewClient(c.Brokers, base)
			} else {
				_ = client.Close()
			}
		}
		select {
		case done <- result{client, err}:
		case <-ctx.Done():
			if err == nil {
				_ = client.Close()
			}
		}
	}()
	select {
	case r := <-done:
		return r.client, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refusal says what the user must mend where err is nothing that passes, and is nil where
// it may.
func refusal(c Config, err error) error {
	var (
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		invalid  x509.CertificateInvalidError
		noTLS    tls.RecordHeaderError
		alert    tls.AlertError
		mismatch sarama.ConfigurationError
	)
	switch {
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed):
		return fmt.Errorf("kafka: the brokers refuse the login of %q with %s: check sasl.user and sasl.password: %w", c.SASL.User, c.SASL.Mechanism, err)
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism):
		return fmt.Errorf("kafka: the brokers do not take %s: choose another sasl.mechanism, or enable it in the brokers' sasl.enabled.mechanisms: %w", c.SASL.Mechanism, err)
	case errors.As(err, &unknown):
		return fmt.Errorf("kafka: the brokers' certificate is signed by an authority that is not trusted: give its certificate as tls.ca: %w", err)
	case errors.As(err, &host):
		return fmt.Errorf("kafka: the brokers' certificate is for another name: give the name in it as tls.server_name, or write the brokers as it does: %w", err)
	case errors.As(err, &invalid):
		return fmt.Errorf("kafka: the brokers' certificate is not valid: %w", err)
	case errors.As(err, &noTLS):
		return fmt.Errorf("kafka: what answers does not speak TLS: set tls.enable to false, or take the brokers' port for TLS: %w", err)
	case errors.As(err, &alert):
		return fmt.Errorf("kafka: the brokers end the TLS handshake: check tls.cert and tls.key: %w", err)
	case errors.As(err, &mismatch):
		return err
	}
	return nil
}

// awayError says in plain words why no broker of addrs answers.
func awayError(addrs []string, err error) error {
	return fmt.Errorf("no broker answers at %s: %s", strings.Join(addrs, ", "), plain(err))
}

// plain returns the reason within err in words.
func plain(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return dns.Error()
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed at once; is it a Kafka broker, and does its port ask for TLS or a login?"
	}
	return err.Error()
}

// away reports whether err comes from brokers that do not answer, or not yet: it may pass.
func away(err error) bool {
	var netErr net.Error
	return errors.Is(err, sarama.ErrOutOfBrokers) || errors.Is(err, sarama.ErrControllerNotAvailable) ||
		errors.Is(err, sarama.ErrNotConnected) || errors.Is(err, sarama.ErrClosedClient) ||
		errors.Is(err, sarama.ErrRequestTimedOut) || errors.Is(err, sarama.ErrBrokerNotAvailable) ||
		errors.Is(err, sarama.ErrLeaderNotAvailable) || errors.Is(err, sarama.ErrNotController) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &netErr)
}
