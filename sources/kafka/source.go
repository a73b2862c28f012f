// Package kafka is the source that takes pages from a topic of a Kafka cluster, which need not
// be that of the transport. They come at least once.
package kafka

import (
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

// Config says where pages come from.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each. Required.
	Brokers []string `yaml:"brokers"`
	// Topic is the topic to read, from its oldest record on. Required.
	Topic string `yaml:"topic"`
	// Group is the consumer group: sources with the same one share the topic's partitions, and
	// go on where they stood. Empty: "vokter-" and Topic.
	Group string `yaml:"group"`
	// TLS and SASL say how brokers and process prove who they are.
	TLS  cluster.TLS  `yaml:"tls"`
	SASL cluster.SASL `yaml:"sasl"`
	// Page makes a page of a record. What is missing in it is told by a dead letter. Nil is
	// Page, the function of this package.
	Page func(*sarama.ConsumerMessage) pipeline.Pushed `yaml:"-"`
}

// Source takes pages from a Kafka topic. It hands over the records of one partition one after
// the other, and commits a record once its page is taken. It stands on Sarama: once a partition
// went to another process no page of it may be handed over, and errors of the group end Run.
type Source struct{ c Config }

var _ pipeline.Source = (*Source)(nil)

// New returns a Source, which connects to nothing before Run.
func New(c Config) *Source {
	if c.Group == "" {
		c.Group = "vokter-" + c.Topic
	}
	return &Source{c}
}

func (s *Source) brokers() cluster.Config {
	return cluster.Config{Brokers: s.c.Brokers, TLS: s.c.TLS, SASL: s.c.SASL}
}

// Validate returns all that is wrong, joined *pipeline.FieldErrors, or nil. It asks no broker.
func (s *Source) Validate() error {
	err := s.brokers().Validate()
	if s.c.Topic == "" {
		err = errors.Join(err, &pipeline.FieldError{Field: "topic", Reason: "a topic is required: the one to read"})
	}
	return err
}

// closeFor is how long leaving the group may take: brokers that are away keep sarama waiting.
const closeFor = 3 * time.Second

// Run hands over the topic's records until ctx is done. It returns an error where the brokers
// cannot be reached, and where a page is not taken.
func (s *Source) Run(ctx context.Context, emit pipeline.Emit) error {
	conf, err := s.brokers().ConsumerGroup()
	if err != nil {
		return err
	}
	client, err := s.brokers().Connect(ctx, conf)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(s.c.Group, client)
	if err != nil {
		_ = client.Close() // what went wrong is err
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
	go func() { closed <- errors.Join(group.Close(), client.Close()) }() // which ends consume
	limit := time.NewTimer(closeFor)
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

// consume hands over records until ctx is done or group is closed, or fails.
func (s *Source) consume(ctx context.Context, group sarama.ConsumerGroup, emit pipeline.Emit) error {
	page := s.c.Page
	if page == nil {
		page = Page
	}
	h := &handler{page: page, emit: emit, failed: make(chan error, 1)}
	for ctx.Err() == nil {
		// It returns with each change of the group's members.
		if err := group.Consume(ctx, []string{s.c.Topic}, h); err != nil {
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("kafka: topic %q: %w", s.c.Topic, err)
		}
		select {
		case err := <-h.failed:
			if ctx.Err() == nil {
				return err
			}
		default:
		}
	}
	return context.Cause(ctx)
}

// handler hands over the records of partitions.
type handler struct {
	page func(*sarama.ConsumerMessage) pipeline.Pushed
	emit pipeline.Emit
	// failed gets why a page was not taken.
	failed chan error
}

var _ sarama.ConsumerGroupHandler = (*handler)(nil)

// Setup does nothing.
func (h *handler) Setup(sarama.ConsumerGroupSession) error { return nil }

// Cleanup does nothing.
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim hands over the records of one partition. Its error ends the session, after
// which what was not marked comes again.
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
			// What is unusable is among the dead letters, and would be so the next time.
			err := h.emit(ctx, h.page(m))
			if err != nil && !errors.Is(err, pipeline.ErrUnusable) {
				if ctx.Err() == nil {
					select {
					case h.failed <- fmt.Errorf("kafka: %s/%d, record %d was not taken: %w", m.Topic, m.Partition, m.Offset, err):
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
	r.Source("kafka", func(decode registry.Decode, _ registry.Env) (pipeline.Source, error) {
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

// Page returns the page that m carries. Its headers are named as in the topic ingest, in any
// case: ce_subject (or url) is the URL, content-type what the value is; ce_id, ce_time (in RFC
// 3339), content-language and traceparent are optional. Without ce_id the ID is derived from
// where m stands; without ce_time the time is that of the record.
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
		// A topic that is deleted and made again has other times at the same offsets.
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
