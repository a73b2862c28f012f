// Package kafka is the sink that writes notifications to a topic of the operator's own: one
// record for each, whose value is the documented JSON and whose headers are those of a
// CloudEvent (https://cloudevents.io) in the binary mode of its Kafka protocol binding. The
// cluster has nothing to do with the pipeline's transport, which may be the local one. It may
// be in any network: what limits the networks of other sinks does not limit its brokers.
//
// The headers are ce_id (the ID of the notification), ce_type (vokter.notification.v1, or vokter.change.v1 for a
// change record), ce_dataschema (the JSON Schema of the value), ce_source, ce_subject (the page, if it is about one),
// ce_time, ce_specversion and content-type.
//
// A notification is delivered once all in-sync replicas have it. The sink publishes with the Publisher of
// watermill-kafka over an idempotent producer, which batches what is delivered at the same time; a notification that is
// tried again is a record with the same ce_id, which consumers drop. If the brokers refuse a
// batch as too large, each of its records is written once more, alone. The sink connects when
// the first notification is delivered, and again after a failure.
package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"golang.org/x/sync/singleflight"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a Kafka sink.
type Config struct {
	// Brokers are some brokers of the cluster, as HOST:PORT, such as [kafka-1:9092,
	// kafka-2:9092]; the others are discovered. The cluster may differ from that of the
	// transport. Required.
	Brokers []string `yaml:"brokers"`
	// Topic is the topic to write to, such as page-alerts. It must exist. Required.
	Topic string `yaml:"topic"`
	// Key is what the key of a record is, and so which notifications keep their order: page
	// (the address of the page), document (the document in the page, by its ID), client (who
	// subscribed) or notification (its ID, which spreads them over all partitions). What does
	// not apply, as to events of health, is replaced by the page. Default: page.
	Key string `yaml:"key"`
	// MaxMessageBytes is the largest size of a record in bytes, from 1024 to 100000000. Raise
	// it together with max.message.bytes of the topic. Default: 1048576.
	MaxMessageBytes int `yaml:"max_message_bytes"`
	// TLS configures encryption.
	TLS cluster.TLS `yaml:"tls"`
	// SASL configures the login.
	SASL cluster.SASL `yaml:"sasl"`
	// SchemaRegistry is where the schemas of the records are registered, whose IDs the records then carry. Default: none.
	SchemaRegistry cluster.SchemaRegistry `yaml:"schema_registry"`
}

// The values of Config.Key.
const (
	KeyPage         = "page"
	KeyDocument     = "document"
	KeyClient       = "client"
	KeyNotification = "notification"
)

var keyKinds = []string{KeyPage, KeyDocument, KeyClient, KeyNotification}

// Bounds of Config.MaxMessageBytes. sarama makes no larger requests than the second.
const (
	minMessageBytes     = 1 << 10
	maxMessageBytes     = 100_000_000
	defaultMessageBytes = 1 << 20
)

// Kafka's rule for names of topics.
var topicPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

const maxTopicLength = 249

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors. It reads the
// files that TLS names, and asks no broker.
func New(c Config) (*Sink, error) {
	c.Key = cmp.Or(c.Key, KeyPage)
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, defaultMessageBytes)
	if err := c.validate(); err != nil {
		return nil, err
	}
	conf, err := c.clusterConfig().Producer()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = c.MaxMessageBytes
	return newSink(c, conf), nil
}

// clusterConfig returns the cluster to which c writes.
func (c Config) clusterConfig() cluster.Config {
	return cluster.Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL, SchemaRegistry: c.SchemaRegistry}
}

func (c Config) validate() error {
	var bad outbound.Mistakes
	bad.Join(c.clusterConfig().Validate())
	switch {
	case c.Topic == "":
		bad.Addf("topic", "a topic is required: the one to write to")
	case !topicPattern.MatchString(c.Topic) || c.Topic == "." || c.Topic == "..":
		bad.Addf("topic", "%q cannot be the name of a topic; it may have letters, digits, dots, underscores and hyphens", c.Topic)
	case len(c.Topic) > maxTopicLength:
		bad.Addf("topic", "%d characters are too many for a topic; at most %d", len(c.Topic), maxTopicLength)
	}
	if !slices.Contains(keyKinds, c.Key) {
		bad.Addf("key", "%q is not known; write one of %s", c.Key, strings.Join(keyKinds, ", "))
	}
	if c.MaxMessageBytes < minMessageBytes || c.MaxMessageBytes > maxMessageBytes {
		bad.Addf("max_message_bytes", "%d is not between %d and %d", c.MaxMessageBytes, minMessageBytes, maxMessageBytes)
	}
	return bad.Err()
}

// Register registers the kind of sink "kafka" with r.
func Register(r *registry.Registry) {
	registry.AddSink(r, "kafka", func(c Config, _ registry.Env) (*Sink, error) { return New(c) })
}

// Sink writes notifications to one topic. It is safe for concurrent use.
type Sink struct {
	cfg            Config
	schemas        registeredSchemas
	producerConfig *sarama.Config
	// ctx ends with Close.
	ctx    context.Context
	cancel context.CancelFunc
	// connecting makes current. Deliveries that come meanwhile wait for the same attempt.
	connecting singleflight.Group

	mu      sync.Mutex
	current *connection // nil: the next delivery connects
	// open counts the connections that are not closed yet.
	open sync.WaitGroup
}

var (
	_ pipeline.ChangeSink = (*Sink)(nil)
	_ io.Closer           = (*Sink)(nil)
)

var errClosed = errors.New("kafka: the sink is closed")

func newSink(c Config, conf *sarama.Config) *Sink {
	s := &Sink{cfg: c, producerConfig: conf}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Deliver writes n to the topic and returns nil once all in-sync replicas have it.
func (s *Sink) Deliver(ctx context.Context, n pipeline.Notification) error {
	m, err := s.newMessage(ctx, n)
	if err != nil {
		return err
	}
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.users.Done()
	err = s.publish(ctx, c, m, 1)
	// The size limit of the brokers counts for a whole batch.
	if errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		return s.publish(ctx, c, m, maxInFlight)
	}
	return err
}

// atOnce is how many records an attempt sends at the same time. maxInFlight is more, so that a
// record waits for a slot only while another one is sent alone.
const (
	atOnce      = 100
	maxInFlight = 1000
)

// TakesChanges returns an error if the changes of a document would be in several partitions. A change
// record is the value of its Kafka record.
func (s *Sink) TakesChanges() error {
	if s.cfg.Key == KeyNotification {
		return errors.New("key: notification spreads the changes of a document over all partitions, where they have no order; write key: page or key: document")
	}
	return nil
}

// Batch says that an attempt delivers waiting notifications at the same time: the producer
// batches them.
func (s *Sink) Batch() (notifications, together int) { return atOnce, atOnce }

// publish publishes m on c once it has so many slots of c.inFlight: with all of them, m is in no batch with others.
func (s *Sink) publish(ctx context.Context, c *connection, m *message.Message, slots int64) error {
	if err := c.inFlight.Acquire(ctx, slots); err != nil {
		return fmt.Errorf("kafka: the record was not sent: %w", err)
	}
	published := make(chan error, 1)
	c.users.Go(func() {
		defer c.inFlight.Release(slots)
		published <- c.publisher.Publish(s.cfg.Topic, m)
	})
	select {
	case err := <-published:
		broken, reason := s.classify(err, m)
		if broken {
			s.retire(c)
		}
		return reason
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			s.retire(c)
		}
		return failure.Ambiguous(fmt.Errorf("kafka: no answer from the brokers: %w", ctx.Err()))
	}
}

// classify classifies err, the result of publishing m. broken says that the connection must not be used again: the next
// delivery connects again, and reports the reason if that fails.
func (s *Sink) classify(err error, m *message.Message) (broken bool, _ error) {
	if err == nil {
		return false, nil
	}
	if large, ok := errors.AsType[*tooLargeError](err); ok {
		return false, failure.Refused(fmt.Errorf("kafka: the record has %d bytes: raise max_message_bytes of the sink, which is %d, and max.message.bytes of topic %s",
			large.size, s.cfg.MaxMessageBytes, s.cfg.Topic))
	}
	if errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		size := recordOf(s.cfg.Topic, m).ByteSize(recordVersion)
		return false, failure.Refused(fmt.Errorf("kafka: topic %s does not take a record of %d bytes: raise its max.message.bytes; run: %s (%w)",
			s.cfg.Topic, size, s.cfg.clusterConfig().AlterCommand(s.cfg.Topic, "max.message.bytes", fmt.Sprint(max(2*size, defaultMessageBytes))), sarama.ErrMessageSizeTooLarge))
	}
	if known := s.knownError(err); known != nil {
		return true, known
	}
	reason := s.cfg.clusterConfig().Reason(err)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		reason = "the connection to the brokers broke" // it was there: nothing is wrong with the settings
	}
	return true, failure.Ambiguous(fmt.Errorf("kafka: topic %s: %s", s.cfg.Topic, reason))
}

// knownError explains an err after which nothing was written. It returns nil for all other errors.
func (s *Sink) knownError(err error) error {
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return fmt.Errorf("kafka: there is no topic %s; make it: %s", s.cfg.Topic, s.cfg.clusterConfig().CreateCommand(s.cfg.Topic))
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		return fmt.Errorf("kafka: we may not write to topic %s: allow Write and Describe on it", s.cfg.Topic)
	case errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return errors.New("kafka: we may not write with an idempotent producer: allow IdempotentWrite on the cluster")
	case errors.Is(err, sarama.ErrNotEnoughReplicas):
		return fmt.Errorf("kafka: topic %s has fewer replicas in sync than its min.insync.replicas", s.cfg.Topic)
	}
	return nil
}
