package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
)

// refusal says what the user must mend where err is nothing that passes by itself, and is
// nil where it may.
func refusal(c Config, err error) error {
	because := func(format string, args ...any) error {
		return fmt.Errorf("kafka: %s (%w)", fmt.Sprintf(format, args...), err)
	}
	switch {
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed):
		return because("the brokers refuse the login of %q with %s: check sasl.user, sasl.password and sasl.mechanism", c.SASL.User, c.SASL.Mechanism)
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism):
		return because("the brokers do not take %s: choose another sasl.mechanism, or add it to sasl.enabled.mechanisms of the brokers", c.SASL.Mechanism)
	case errors.Is(err, sarama.ErrIllegalSASLState):
		return because("the brokers ask for no login at this port: remove sasl, or take the port that does")
	case is[x509.UnknownAuthorityError](err):
		return because("the brokers' certificate is signed by an authority that is not trusted: name the authority's certificate in tls.ca")
	case is[x509.HostnameError](err):
		return because("the brokers' certificate is for another name: write that as tls.server_name, or the brokers as it names them")
	case is[x509.CertificateInvalidError](err):
		return because("the brokers' certificate is not valid")
	case is[tls.RecordHeaderError](err):
		return because("what answers does not speak TLS: switch tls.enable off, or take the brokers' port for TLS")
	case remoteAlert(err):
		return because("the brokers end the TLS handshake: check tls.cert and tls.key, which they may ask for")
	case is[sarama.PacketDecodingError](err), errors.Is(err, io.ErrUnexpectedEOF) && !c.TLS.Enable:
		return because("what answers does not speak Kafka's protocol: if the port is for TLS, switch tls.enable on")
	case is[sarama.ConfigurationError](err):
		return err
	}
	return nil
}

// remoteAlert reports whether the other side ended a TLS handshake.
func remoteAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// Cause returns the reason within err in words, without a hint what to mend; see Reason.
func (c Config) Cause(err error) string {
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

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
