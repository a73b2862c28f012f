package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config configures a Transport. Brokers is required; the zero values of all other fields are
// useful. The fields with a name in YAML are those of a configuration file.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each; the others are found.
	Brokers []string `yaml:"brokers"`
	// Prefix begins the names of all topics and of the consumer group. Empty is "vokter.".
	Prefix string `yaml:"topic_prefix"`
	// Lanes is the number of partitions of a topic that is created, and thus how many messages of
	// a topic are handled at the same time by all processes together. Existing topics keep their
	// number. 0 is 64.
	Lanes int `yaml:"partitions"`
	// Replication is the number of replicas of a topic that is created. 0 is three, or the number
	// of brokers if there are fewer.
	Replication int `yaml:"replication"`
	// CreateTopics says whether missing topics are created; if it is false and one is missing,
	// Start fails. nil is true.
	CreateTopics *bool `yaml:"create_topics"`
	// Pages says that the current text of each document is published: the topic "pages" is a compacted one with a
	// record for each document, which ends with a tombstone. False: there is no such topic.
	Pages bool `yaml:"pages"`
	// Group is the consumer group in which processes share the lanes. Empty is Prefix
	// without its last dot.
	Group string `yaml:"group"`
	// InstanceID is a name that this process keeps across restarts (static membership): it gets
	// its lanes back at once, and the other processes take them only after SessionTimeout. Empty:
	// a process that ends gives its lanes to the others.
	InstanceID string `yaml:"instance_id"`
	// SessionTimeout is how long a process may send no heartbeat before it loses its lanes. 0 is
	// 10 s, and 45 s with an InstanceID.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// TLS configures encryption, SASL the login of this process.
	TLS  cluster.TLS  `yaml:"tls"`
	SASL cluster.SASL `yaml:"sasl"`
	// SchemaRegistry is where the schemas of the public records are registered, whose IDs the records then carry. The zero
	// value: the records carry none.
	SchemaRegistry cluster.SchemaRegistry `yaml:"schema_registry"`
	// MaxPause is the longest pause before a rejected message is delivered again. Pauses begin at
	// 5 ms and double. 0 is 1 s.
	MaxPause time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger receives log messages for operators; nil discards them.
	Logger *slog.Logger
}

// Defaults and bounds of a Config.
const (
	defaultPrefix        = "vokter."
	defaultLanes         = 64
	maxLanes             = 10_000
	maxReplication       = 1<<15 - 1
	staticSessionTimeout = 45 * time.Second // with an InstanceID
	minSessionTimeout    = 500 * time.Millisecond
	maxPrefixLength      = 150 // a topic's name has at most 249 characters
)

// Kafka's rule for names of topics and instances.
var validName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// Validate returns all mistakes in c as joined *pipeline.FieldErrors, whose Field is the name in
// YAML, or nil. It reads the files that c.TLS names, and does not connect to the brokers.
func (c Config) Validate() error {
	errs := []error{c.clusterConfig().Validate()}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	switch {
	case !validName.MatchString(c.Prefix):
		bad("topic_prefix", "%q has characters that names of topics may not have; they may have letters, digits, dots, underscores and hyphens", c.Prefix)
	case len(c.Prefix) > maxPrefixLength:
		bad("topic_prefix", "%d characters are too many; at most %d", len(c.Prefix), maxPrefixLength)
	}
	if c.Lanes < 0 || c.Lanes > maxLanes {
		bad("partitions", "%d is not between 1 and %d", c.Lanes, maxLanes)
	}
	if c.Replication < 0 || c.Replication > maxReplication {
		bad("replication", "%d is not between 1 and the number of brokers", c.Replication)
	}
	if !validName.MatchString(c.InstanceID) {
		bad("instance_id", "%q has characters that it may not have; it may have letters, digits, dots, underscores and hyphens", c.InstanceID)
	}
	if c.SessionTimeout != 0 && c.SessionTimeout < minSessionTimeout {
		bad("session_timeout", "%v is too short; at least %v, and brokers ask for 6s unless they are configured otherwise", c.SessionTimeout, minSessionTimeout)
	}
	return errors.Join(errs...)
}

// withDefaults returns c with its defaults, except for Replication, which depends on the number
// of brokers.
func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.Lanes = cmp.Or(c.Lanes, defaultLanes)
	c.Group = cmp.Or(c.Group, strings.TrimSuffix(c.Prefix, "."), strings.TrimSuffix(defaultPrefix, "."))
	c.MaxPause = cmp.Or(c.MaxPause, time.Second)
	if c.InstanceID != "" {
		c.SessionTimeout = cmp.Or(c.SessionTimeout, staticSessionTimeout)
	}
	c.SessionTimeout = cmp.Or(c.SessionTimeout, cluster.DefaultSessionTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// publishedTopics returns those of topics that a Transport of c publishes: a table only if c asks for it, or if a group
// reads it.
func (c Config) publishedTopics(topics map[string]flow.Topic) map[string]flow.Topic {
	published := maps.Clone(topics)
	maps.DeleteFunc(published, func(_ string, t flow.Topic) bool { return t.Table && !c.Pages && len(t.Groups) == 0 })
	return published
}

// clusterConfig returns the part of c that connections need.
func (c Config) clusterConfig() cluster.Config {
	return cluster.Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL, SchemaRegistry: c.SchemaRegistry}
}

// adminConfig returns the part of c that concerns topics. c has its defaults.
func (c Config) adminConfig() admin.Config {
	return admin.Config{
		Config: c.clusterConfig(), Prefix: c.Prefix, Group: c.Group, Lanes: c.Lanes, Replication: c.Replication, NoCreate: c.CreateTopics != nil && !*c.CreateTopics, Logger: c.Logger,
	}
}

// Register adds the transport "kafka" to r.
func Register(r *registry.Registry) {
	r.Transports.Add("kafka", func() registry.Transport { return new(Config) })
}

// Open returns a Transport that is not started yet.
func (c Config) Open() (flow.Transport, error) { return New(c) }

// Check compares the cluster of c with the needs of a Transport with topics (names without the
// prefix). It changes nothing. It returns lines for people: the existing topics, those that a
// start would create, and warnings. The error joins everything that would make Start fail, or says
// why the brokers cannot be asked. Check takes at most 5 s.
func Check(ctx context.Context, c Config, topics map[string]flow.Topic) ([]string, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return admin.Check(ctx, c.withDefaults().adminConfig(), c.publishedTopics(topics))
}
