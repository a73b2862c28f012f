package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// probeInterval is the pause between two attempts of Await.
const probeInterval = 500 * time.Millisecond

// Await returns a client of the cluster. It waits until a broker answers; when ctx is done it
// returns the cause. While it waits it calls waiting with the reason, and with nil when a broker
// answers. Errors that do not pass by themselves, such as a wrong password or an untrusted
// certificate, are returned at once. The caller closes the client.
func (c Config) Await(ctx context.Context, log *slog.Logger, waiting func(reason error)) (sarama.Client, error) {
	base, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	if w := c.OpenPassword(); w != "" {
		log.Warn("kafka: " + w)
	}
	var since time.Time
	for {
		found, err := probe(ctx, c, base)
		if err == nil {
			if !since.IsZero() {
				log.Info("kafka: the brokers answer", "waited", time.Since(since).Round(time.Second))
			}
			waiting(nil)
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if fatal := permanentError(c, err); fatal != nil {
			return nil, fatal
		}
		reason := c.Unanswered(err)
		waiting(reason)
		if since.IsZero() {
			since = time.Now()
			log.Warn("kafka: " + reason.Error() + "; waiting")
		}
		if err := client.Sleep(ctx, probeInterval); err != nil {
			return nil, err
		}
	}
}

// probe asks each broker once, and returns a client with the retries of base if one answers.
func probe(ctx context.Context, c Config, base *sarama.Config) (sarama.Client, error) {
	return client.Do(ctx, func() (sarama.Client, error) {
		if err := c.Ask(base); err != nil {
			return nil, err
		}
		return sarama.NewClient(c.Brokers, base)
	}, func(late sarama.Client) { _ = late.Close() })
}

// Ask asks the brokers one after the other, each once, until one answers.
func (c Config) Ask(base *sarama.Config) error {
	once := client.Once(base)
	first, err := sarama.NewClient(c.Brokers, once)
	if err != nil {
		if cause := connectError(c.Brokers, once); cause != nil {
			err = cause
		}
		return err
	}
	defer first.Close()
	return checkAdvertised(first)
}

// connectError connects to each broker and returns why that fails. The error of a client does not
// always say it.
func connectError(brokers []string, conf *sarama.Config) error {
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

// checkAdvertised connects to a broker under the address that the cluster advertises, which may differ from
// those in the configuration.
func checkAdvertised(client sarama.Client) error {
	b, err := client.Controller()
	if err != nil {
		return err
	}
	_ = b.Open(client.Config()) // an error says that it is open
	if ok, err := b.Connected(); !ok {
		if err == nil {
			err = sarama.ErrNotConnected
		}
		return &advertisedError{addr: b.Addr(), err: err}
	}
	return nil
}

// advertisedError is the error of a broker that does not answer under its advertised address.
type advertisedError struct {
	addr string
	err  error
}

func (a *advertisedError) Error() string { return a.addr + ": " + a.err.Error() }
func (a *advertisedError) Unwrap() error { return a.err }

// Unanswered returns an error for the operator: no broker of c answers, and why.
func (c Config) Unanswered(err error) error {
	if a, ok := errors.AsType[*advertisedError](err); ok {
		return fmt.Errorf("the broker at %s, its advertised address, does not answer: %s", a.addr, c.Cause(a.err))
	}
	return fmt.Errorf("no broker answers at %s: %s", strings.Join(c.Brokers, ", "), c.Cause(err))
}

// permanentError returns an error that says what the user must fix. It is nil if err may pass by itself.
func permanentError(c Config, err error) error {
	because := func(format string, args ...any) error {
		return fmt.Errorf("kafka: %s (%w)", fmt.Sprintf(format, args...), err)
	}
	switch {
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed) && c.SASL.Mechanism == sarama.SASLTypeOAuth:
		return nil // the next token may be another one
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed):
		return because("the brokers refuse the login of %q with %s: check sasl.user, sasl.password and sasl.mechanism", c.SASL.User, c.SASL.Mechanism)
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism):
		return because("the brokers do not take %s: choose another sasl.mechanism, or add it to sasl.enabled.mechanisms of the brokers", c.SASL.Mechanism)
	case errors.Is(err, sarama.ErrIllegalSASLState):
		return because("the brokers ask for no login at this port: remove sasl, or take the port that does")
	case hasType[x509.UnknownAuthorityError](err):
		return because("the brokers' certificate is signed by an authority that is not trusted: name the authority's certificate in tls.ca")
	case hasType[x509.HostnameError](err):
		return because("the brokers' certificate is for another name: write that as tls.server_name, or the brokers as it names them")
	case hasType[x509.CertificateInvalidError](err):
		return because("the brokers' certificate is not valid")
	case hasType[tls.RecordHeaderError](err):
		return because("what answers does not speak TLS: switch tls.enable off, or take the brokers' port for TLS")
	case isTLSAlert(err):
		return because("the brokers end the TLS handshake: check tls.cert and tls.key, which they may ask for")
	case hasType[sarama.PacketDecodingError](err), errors.Is(err, io.ErrUnexpectedEOF) && !c.TLS.Enable:
		return because("what answers does not speak Kafka's protocol: if the port is for TLS, switch tls.enable on")
	case hasType[sarama.ConfigurationError](err):
		return err
	}
	return nil
}

// isTLSAlert reports whether the other side ended a TLS handshake.
func isTLSAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// Cause describes err in words, without a hint what to fix; see Reason.
func (c Config) Cause(err error) string {
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) && c.SASL.Mechanism == sarama.SASLTypeOAuth {
		return "the brokers refuse the token: check sasl.token_file or sasl.token_command (" + strings.Join(strings.Fields(err.Error()), " ") + ")"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Error()
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return "no answer in time"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		switch {
		case c.TLS.Enable && c.SASL.Mechanism == "":
			return "the connection was closed at once; if it stays so, the port is not for TLS, or asks for a login (sasl)"
		case c.TLS.Enable:
			return "the connection was closed at once; if it stays so, the port is not for TLS"
		case c.SASL.Mechanism == "":
			return "the connection was closed at once; if it stays so, the port is for TLS (tls.enable), or asks for a login (sasl)"
		}
		return "the connection was closed at once; if it stays so, the port is for TLS (tls.enable)"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
