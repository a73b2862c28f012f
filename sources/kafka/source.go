// Package kafka is a source that reads pages from a topic of a Kafka cluster, which may differ
// from the cluster of the transport. Each page is delivered at least once.
package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config configures a Source.
type Config struct {
	// Brokers are some brokers of the cluster, as HOST:PORT. Required.
	Brokers []string `yaml:"brokers"`
	// Topic is the topic to read. A new group starts at its oldest record. Required.
	Topic string `yaml:"topic"`
	// Group is the consumer group. Sources of one group share the partitions of the topic and
	// continue at the committed offsets. Empty means "vokter-" followed by Topic.
	Group string `yaml:"group"`
	// TLS and SASL configure encryption and authentication.
	TLS  cluster.TLS  `yaml:"tls"`
	SASL cluster.SASL `yaml:"sasl"`
	// Page converts a record to a page. A page that lacks something becomes a dead letter that
	// says what. Nil means Page, the function of this package.
	Page func(*sarama.ConsumerMessage) pipeline.Pushed `yaml:"-"`
}

// Source reads pages from a Kafka topic. It emits the records of one partition one after the
// other, and commits the offset of a record once its page is published. It uses Sarama
// directly, so that it emits no page of a partition that it has lost, and so that errors of the
// group end Run.
type Source struct{ c Config }

var _ pipeline.Source = (*Source)(nil)

// New returns a Source. It makes no connection before Run.
func New(c Config) *Source {
	c.Group = cmp.Or(c.Group, "vokter-"+c.Topic)
	return &Source{c}
}

func (s *Source) clusterConfig() cluster.Config {
	return cluster.Config{Brokers: s.c.Brokers, TLS: s.c.TLS, SASL: s.c.SASL}
}

// Validate returns all mistakes in the Config as joined *pipeline.FieldErrors, or nil. It makes
// no connection.
func (s *Source) Validate() error {
	err := s.clusterConfig().Validate()
	if s.c.Topic == "" {
		err = errors.Join(err, &pipeline.FieldError{Field: "topic", Reason: "a topic is required: the one to read"})
	}
	return err
}

// closeTimeout is how long leaving the group may take. Sarama waits longer for brokers that do not
// answer.
const closeTimeout = 3 * time.Second

// Run emits the records of the topic until ctx is done. It returns an error if it reaches no
// broker, or if emit fails.
func (s *Source) Run(ctx context.Context, emit pipeline.Emit) error {
	conf, err := s.clusterConfig().ConsumerGroup()
	if err != nil {
		return err
	}
	client, err := s.clusterConfig().Connect(ctx, conf)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(s.c.Group, client)
	if err != nil {
		_ = client.Close() // err is more important
		return fmt.Errorf("kafka: %w", err)
	}
	consumed := make(chan error, 1)
	go func() { consumed <- s.consume(ctx, group, emit) }()
	select {
	case err = <-consumed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	closed := make(chan error, 1)
	go func() { closed <- errors.Join(group.Close(), client.Close()) }() // makes consume return
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	select {
	case cerr := <-closed:
		if cerr != nil && ctx.Err() == nil {
			err = errors.Join(err, fmt.Errorf("kafka: leaving group %q: %w", s.c.Group, cerr))
		}
	case <-limit.C:
	}
	return err
}

// consume emits records until ctx is done, or group is closed or fails.
func (s *Source) consume(ctx context.Context, group sarama.ConsumerGroup, emit pipeline.Emit) error {
	page := s.c.Page
	if page == nil {
		page = Page
	}
	h := &handler{page: page, emit: emit, emitError: make(chan error, 1)}
	for ctx.Err() == nil {
		// Consume returns at each rebalance.
		if err := group.Consume(ctx, []string{s.c.Topic}, h); err != nil {
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("kafka: topic %q: %w", s.c.Topic, err)
		}
		select {
		case err := <-h.emitError:
			if ctx.Err() == nil {
				return err
			}
		default:
		}
	}
	return context.Cause(ctx)
}

// handler emits the records of the claimed partitions.
type handler struct {
	page func(*sarama.ConsumerMessage) pipeline.Pushed
	emit pipeline.Emit
	// emitError receives the error of emit.
	emitError chan error
}

var _ sarama.ConsumerGroupHandler = (*handler)(nil)

// Setup does nothing.
func (h *handler) Setup(sarama.ConsumerGroupSession) error { return nil }

// Cleanup does nothing.
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim emits the records of one partition. An error ends the session. Records that are
// not marked by then are read again.
func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	ctx := session.Context()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			// A page that is unusable became a dead letter. To read it again would not help.
			err := h.emit(ctx, h.page(m))
			if err != nil && !errors.Is(err, pipeline.ErrUnusable) {
				if ctx.Err() == nil {
					select {
					case h.emitError <- fmt.Errorf("kafka: %s/%d, record %d was not taken: %w", m.Topic, m.Partition, m.Offset, err):
					default:
					}
				}
				return err
			}
			session.MarkMessage(m, "")
		}
	}
}

// Register registers the kind of source "kafka" in r.
func Register(r *registry.Registry) {
	r.Sources.Add("kafka", func(decode registry.Decode, _ registry.Env) (pipeline.Source, error) {
		var c Config
		if err := decode(&c); err != nil {
			return nil, err
		}
		s := New(c)
		if err := s.Validate(); err != nil {
			return nil, err
		}
		return s, nil
	})
}

// Page returns the page in m, whose value is the body. Headers have the names of the topic
// ingest, in any case: ce_subject (or url) is the URL, content-type the type of the value.
// Optional are ce_id, ce_time (RFC 3339), content-language and traceparent. Without ce_id the
// ID is derived from topic, partition, offset and time of m. Without ce_time the time of the
// record is used.
func Page(m *sarama.ConsumerMessage) pipeline.Pushed {
	h := make(map[string]string, len(m.Headers))
	for _, header := range m.Headers {
		h[strings.ToLower(string(header.Key))] = string(header.Value)
	}
	p := pipeline.Pushed{
		URL: h["ce_subject"], ContentType: h["content-type"], ContentLanguage: h["content-language"],
		Body: m.Value, ID: h["ce_id"], Time: m.Timestamp,
	}
	if p.URL == "" {
		p.URL = h["url"]
	}
	if p.ID == "" {
		// The time distinguishes records of a topic that was deleted and made again.
		p.ID = flow.DeriveID("kafka", m.Topic, strconv.Itoa(int(m.Partition)), strconv.FormatInt(m.Offset, 10), strconv.FormatInt(m.Timestamp.UnixMilli(), 10))
	}
	if at, err := time.Parse(time.RFC3339Nano, h["ce_time"]); err == nil {
		p.Time = at
	}
	if trace := h[flow.HeaderTrace]; trace != "" {
		p.Header = map[string]string{flow.HeaderTrace: trace}
	}
	return p
}
