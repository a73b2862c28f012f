// Package cluster connects to a Kafka cluster: where its brokers are, how brokers and process
// prove who they are, and what a failed connection means in words for the operator. The
// transport, the sink and the source of Kafka share it.
package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config says where a cluster is. Brokers is needed.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each; the others are found.
	Brokers []string
	// TLS says how the connection is encrypted, SASL as whom this process logs in.
	TLS  TLS
	SASL SASL
}

// TLS says how the connection to brokers is encrypted.
type TLS struct {
	// Enable turns it on. Default: false.
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
	// Insecure takes any certificate: for tests. Default: false.
	Insecure bool `yaml:"insecure"`
}

// SASL says as whom this process logs in.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Empty: nobody logs in.
	Mechanism string `yaml:"mechanism"`
	// User is the name to log in with. Required with a Mechanism.
	User string `yaml:"user"`
	// Password is the secret to log in with. Required with a Mechanism.
	Password registry.Secret `yaml:"password"`
}

// Validate returns all that is wrong, joined *pipeline.FieldErrors, or nil. It reads the files
// that c.TLS names, and asks no broker.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if len(c.Brokers) == 0 {
		bad("brokers", "at least one broker is needed, such as kafka-1:9092")
	}
	for i, b := range c.Brokers {
		if err := checkAddress(b); err != nil {
			bad(fmt.Sprintf("brokers[%d]", i), "%v", err)
		}
	}
	c.TLS.validate(bad)
	c.SASL.validate(bad)
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
