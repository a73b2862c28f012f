package kafka

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a Kafka sink.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each, such as [kafka-1:9092, kafka-2:9092];
	// the others are found. They may be other ones than those of the transport. Required.
	Brokers []string `yaml:"brokers"`
	// Topic is the topic to write to, such as page-alerts. It must exist. Required.
	Topic string `yaml:"topic"`
	// Key is what the key of a record is, and so which notifications keep their order: page
	// (the address of the page), document (the document in the page, by its ID), client (who
	// subscribed) or notification (its ID, which spreads them over all partitions). What does
	// not apply, as to events of health, is replaced by the page. Default: page.
	Key string `yaml:"key"`
	// MaxMessageBytes is how many bytes a record may have, from 1024 to 100000000. Raise it
	// together with max.message.bytes of the topic. Default: 1048576.
	MaxMessageBytes int `yaml:"max_message_bytes"`
	// TLS says how the connection is encrypted.
	TLS cluster.TLS `yaml:"tls"`
	// SASL says as whom to log in.
	SASL cluster.SASL `yaml:"sasl"`
}

// The values of Config.Key.
const (
	KeyPage         = "page"
	KeyDocument     = "document"
	KeyClient       = "client"
	KeyNotification = "notification"
)

var keys = []string{KeyPage, KeyDocument, KeyClient, KeyNotification}

// Bounds of Config.MaxMessageBytes. sarama makes no larger requests than the second.
const (
	minMessageBytes     = 1 << 10
	maxMessageBytes     = 100_000_000
	defaultMessageBytes = 1 << 20
)

// Kafka's rule for names of topics.
var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

const maxTopic = 249

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong. It
// reads the files that TLS names, and asks no broker.
func New(c Config) (*Sink, error) {
	if c.Key == "" {
		c.Key = KeyPage
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = defaultMessageBytes
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	conf, err := c.brokers().Producer()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = c.MaxMessageBytes
	return newSink(c, conf), nil
}

// cluster is where c writes to.
func (c Config) brokers() cluster.Config {
	return cluster.Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL}
}

func (c Config) validate() error {
	errs := []error{c.brokers().Validate()}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Topic == "":
		bad("topic", "is needed: the topic to write to")
	case !legalTopic.MatchString(c.Topic) || c.Topic == "." || c.Topic == "..":
		bad("topic", "%q cannot be the name of a topic; it may have letters, digits, dots, underscores and hyphens", c.Topic)
	case len(c.Topic) > maxTopic:
		bad("topic", "%d characters are too many; at most %d", len(c.Topic), maxTopic)
	}
	if !slices.Contains(keys, c.Key) {
		bad("key", "%q is not known; it is one of %s", c.Key, strings.Join(keys, ", "))
	}
	if c.MaxMessageBytes < minMessageBytes || c.MaxMessageBytes > maxMessageBytes {
		bad("max_message_bytes", "%d is not between %d and %d", c.MaxMessageBytes, minMessageBytes, maxMessageBytes)
	}
	return errors.Join(errs...)
}

// Register makes the configuration know the kind of sink "kafka".
func Register(r *registry.Registry) {
	registry.AddSink(r, "kafka", func(c Config, _ registry.Env) (*Sink, error) { return New(c) })
}
