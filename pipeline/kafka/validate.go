package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Defaults and bounds of a Config.
const (
	defaultPrefix         = "vokter."
	defaultLanes          = 32
	maxLanes              = 10_000
	defaultReplication    = 3
	maxReplication        = 1<<15 - 1
	defaultSessionTimeout = 10 * time.Second
	staticSessionTimeout  = 45 * time.Second // with an InstanceID
	minSessionTimeout     = 500 * time.Millisecond
	maxPrefix             = 150 // a topic's name has at most 249 characters
)

// Kafka's rule for names of topics and instances.
var legalName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// Validate returns all that is wrong with c, joined *pipeline.FieldErrors whose Field is
// the name in YAML, or nil. It reads the files that c.TLS names, and asks no broker.
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
	switch {
	case !legalName.MatchString(c.Prefix):
		bad("topic_prefix", "%q has characters that names of topics may not have; they may have letters, digits, dots, underscores and hyphens", c.Prefix)
	case len(c.Prefix) > maxPrefix:
		bad("topic_prefix", "%d characters are too many; at most %d", len(c.Prefix), maxPrefix)
	}
	if c.Lanes < 0 || c.Lanes > maxLanes {
		bad("partitions", "%d is not between 1 and %d", c.Lanes, maxLanes)
	}
	if c.Replication < 0 || c.Replication > maxReplication {
		bad("replication", "%d is not between 1 and the number of brokers", c.Replication)
	}
	if !legalName.MatchString(c.InstanceID) {
		bad("instance_id", "%q has characters that it may not have; it may have letters, digits, dots, underscores and hyphens", c.InstanceID)
	}
	if c.SessionTimeout != 0 && c.SessionTimeout < minSessionTimeout {
		bad("session_timeout", "%v is too short; at least %v, and brokers ask for 6s unless they are configured otherwise", c.SessionTimeout, minSessionTimeout)
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

// withDefaults returns c with every default filled in, other than Replication, which
// depends on how many brokers there are.
func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.Lanes == 0 {
		c.Lanes = defaultLanes
	}
	if c.Group == "" {
		if c.Group = strings.TrimSuffix(c.Prefix, "."); c.Group == "" {
			c.Group = strings.TrimSuffix(defaultPrefix, ".")
		}
	}
	if c.MaxPause == 0 {
		c.MaxPause = time.Second
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSessionTimeout
		if c.InstanceID != "" {
			c.SessionTimeout = staticSessionTimeout
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
