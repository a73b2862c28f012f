// Package cluster connects to a Kafka cluster: it holds the addresses of the brokers and the
// settings of TLS and SASL, and explains failed connections in words for the operator. The
// transport, the sink and the source for Kafka share it.
package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config holds the connection settings of a cluster. Brokers is required.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each; the others are found.
	Brokers []string
	// TLS configures encryption, SASL the login of this process.
	TLS  TLS
	SASL SASL
	// SchemaRegistry is where the schemas of the records are, if anywhere.
	SchemaRegistry SchemaRegistry
}

// TLS configures the encryption of connections to the brokers.
type TLS struct {
	// Enable turns TLS on. Default: false.
	Enable bool `yaml:"enable"`
	// CA is the PEM file of the authorities that sign the brokers' certificates. Empty: those
	// of the operating system.
	CA string `yaml:"ca"`
	// Cert is the PEM file with which this process proves who it is, if the brokers ask for
	// that, and Key that of its private key. Both or none.
	Cert string `yaml:"cert"`
	// Key is the PEM file of the private key of Cert.
	Key string `yaml:"key"`
	// ServerName is the name in the brokers' certificates where it is not that in Brokers.
	ServerName string `yaml:"server_name"`
	// Insecure accepts any certificate. Use it only for tests. Default: false.
	Insecure bool `yaml:"insecure"`
}

// SASL configures the login of this process.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Empty: no login.
	Mechanism string `yaml:"mechanism"`
	// User is the name to log in with. Required with PLAIN and SCRAM.
	User string `yaml:"user"`
	// Password is the secret to log in with. Required with PLAIN and SCRAM.
	Password registry.Secret `yaml:"password"`
	// TokenFile is a file with the token of OAUTHBEARER. It is read for each login, so another program may renew it.
	TokenFile string `yaml:"token_file"`
	// TokenCommand is a command, run without a shell, that prints the token of OAUTHBEARER within 30 seconds, such as
	// [get-token, --audience, kafka]. Its token serves the logins of a minute.
	TokenCommand []string `yaml:"token_command"`
	// Extensions are sent with the token where the brokers ask for them, such as {logicalCluster: lkc-1}.
	Extensions map[string]string `yaml:"extensions"`
}

// Validate returns all mistakes in c as joined *pipeline.FieldErrors, or nil. It reads the files
// that c.TLS names, and does not connect to the brokers.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if len(c.Brokers) == 0 {
		bad("brokers", "at least one broker is required, such as kafka-1:9092")
	}
	for i, b := range c.Brokers {
		if err := checkAddress(b); err != nil {
			bad(fmt.Sprintf("brokers[%d]", i), "%v", err)
		}
	}
	c.TLS.validate(bad)
	c.SASL.validate(bad)
	c.SchemaRegistry.validate(bad)
	return errors.Join(errs...)
}

func checkAddress(broker string) error {
	host, port, err := net.SplitHostPort(broker)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not HOST:PORT, such as kafka-1:9092", broker)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q: %q is not a port", broker, port)
	}
	return nil
}

// The values of SASL.Mechanism.
var saslMechanisms = []string{sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512, sarama.SASLTypeOAuth}

// validate reports the mistakes in t to bad.
func (t TLS) validate(bad func(field, format string, args ...any)) {
	if !t.Enable {
		if t != (TLS{}) {
			bad("tls.enable", "is off, but other settings of tls are made; set it to true")
		}
		return
	}
	if t.CA != "" {
		if _, err := t.rootCAs(); err != nil {
			bad("tls.ca", "%v", err)
		}
	}
	switch {
	case t.Cert != "" && t.Key == "":
		bad("tls.key", "is needed with tls.cert")
	case t.Cert == "" && t.Key != "":
		bad("tls.cert", "is needed with tls.key")
	case t.Cert != "":
		if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
			bad("tls.cert", "%v", err)
		}
	}
}

// config returns the settings of t, with the contents of its files.
func (t TLS) config() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		roots, err := t.rootCAs()
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		conf.RootCAs = roots
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

func (t TLS) rootCAs() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", t.CA)
	}
	return roots, nil
}

// validate reports the mistakes in s to bad.
func (s SASL) validate(bad func(field, format string, args ...any)) {
	known := strings.Join(saslMechanisms, ", ")
	switch {
	case s.Mechanism == "":
		if !reflect.ValueOf(s).IsZero() {
			bad("sasl.mechanism", "is missing; it is one of %s", known)
		}
		return
	case s.Mechanism == sarama.SASLTypeOAuth:
		s.validateToken(bad)
		return
	case !slices.Contains(saslMechanisms, s.Mechanism):
		bad("sasl.mechanism", "%q is not known; it is one of %s", s.Mechanism, known)
	}
	if s.User == "" {
		bad("sasl.user", "is missing")
	}
	if s.Password.IsZero() {
		bad("sasl.password", "is missing")
	}
	if s.TokenFile != "" || len(s.TokenCommand) > 0 || len(s.Extensions) > 0 {
		bad("sasl.mechanism", "token_file, token_command and extensions are for %s", sarama.SASLTypeOAuth)
	}
}

// validateToken reports the mistakes in a SASL of OAUTHBEARER to bad.
func (s SASL) validateToken(bad func(field, format string, args ...any)) {
	switch {
	case (s.TokenFile == "") == (len(s.TokenCommand) == 0):
		bad("sasl.token_file", "write either token_file or token_command: where the token comes from")
	case s.TokenFile == "" && s.TokenCommand[0] == "":
		bad("sasl.token_command[0]", "is empty; it is the program to run")
	}
	if s.User != "" || !s.Password.IsZero() {
		bad("sasl.user", "user and password are for PLAIN and SCRAM; a token says who logs in")
	}
}

// apply adds the login of s to conf.
func (s SASL) apply(conf *sarama.Config) {
	if s.Mechanism == "" {
		return
	}
	conf.Net.SASL.Enable = true
	conf.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
	conf.Net.SASL.User, conf.Net.SASL.Password = s.User, s.Password.Reveal()
	switch s.Mechanism {
	case sarama.SASLTypeOAuth:
		conf.Net.SASL.TokenProvider = tokensOf(s)
	case sarama.SASLTypeSCRAMSHA256:
		conf.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		conf.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	}
}

// OpenPassword returns a warning if the password or the token is sent unencrypted; otherwise it is empty.
func (c Config) OpenPassword() string {
	switch {
	case c.TLS.Enable:
	case c.SASL.Mechanism == sarama.SASLTypePlaintext:
		return "PLAIN without TLS sends the password as it is; use tls.enable, or SCRAM-SHA-512"
	case c.SASL.Mechanism == sarama.SASLTypeOAuth:
		return "OAUTHBEARER without TLS sends the token as it is; use tls.enable"
	}
	return ""
}

// scramClient is one SCRAM login.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return errors.New("the name or the password has characters that SCRAM does not allow")
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
