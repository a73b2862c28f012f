package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/offline"
	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config says where the brokers are and what is asked of them. Brokers is needed; the zero
// value of everything else is useful. The fields with a name in YAML are those of a
// configuration file.
type Config struct {
	// Brokers are some of the cluster's, HOST:PORT each; the others are found.
	Brokers []string `yaml:"brokers"`
	// Prefix begins the names of all topics and of the consumer group. Empty is "vokter.".
	Prefix string `yaml:"topic_prefix"`
	// Lanes is how many partitions a topic gets that is made now, and so how many messages
	// of a topic are handled at the same time in all processes together. Those that exist
	// keep their number. 0 is 32.
	Lanes int `yaml:"partitions"`
	// Replication is in how many brokers each topic that is made now is kept. 0 is three, or
	// as many brokers as there are.
	Replication int `yaml:"replication"`
	// CreateTopics is whether topics that are missing are made; false refuses to start where one
	// is missing. nil is true.
	CreateTopics *bool `yaml:"create_topics"`
	// Group is the consumer group in which processes share the lanes. Empty is Prefix
	// without its last dot.
	Group string `yaml:"group"`
	// InstanceID is a name of this process that stays when it starts again: then it has its
	// lanes back at once, and the others wait for it for SessionTimeout. Empty: a process that
	// ends gives its lanes to the others.
	InstanceID string `yaml:"instance_id"`
	// SessionTimeout is after how long without a sign of life a process loses its lanes. 0 is
	// 10 s, and 45 s with an InstanceID.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// TLS says how the connection to brokers is encrypted, SASL as whom this process logs in.
	TLS  cluster.TLS  `yaml:"tls"`
	SASL cluster.SASL `yaml:"sasl"`
	// Dir is where a copy of the state is kept, so that a start need not read all of it from
	// the brokers. Empty: in memory.
	Dir string
	// MinFree is how many bytes the disk of Dir must have free; below that publishers outside
	// transactions wait. 0: nothing is watched. Start replaces it.
	MinFree int64
	// MaxPause is the longest pause before a rejected message comes again. Pauses begin at
	// 5 ms and double. 0 is 1 s.
	MaxPause time.Duration
	// Topics says who consumes what; Start replaces it.
	Topics map[string]flow.Topic
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets what operators should know; nil discards it.
	Logger *slog.Logger
	// OnBroken is called, from any goroutine and maybe more than once, when the Transport
	// cannot go on, with an error that says what to do. Start replaces it.
	OnBroken func(error)
}

// DefaultPrefix begins the names of all topics where Config.Prefix is empty.
const DefaultPrefix = "vokter."

// Defaults and bounds of a Config.
const (
	defaultLanes         = 32
	maxLanes             = 10_000
	maxReplication       = 1<<15 - 1
	staticSessionTimeout = 45 * time.Second // with an InstanceID
	minSessionTimeout    = 500 * time.Millisecond
	maxPrefix            = 150 // a topic's name has at most 249 characters
)

// Kafka's rule for names of topics and instances.
var legalName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// Validate returns all that is wrong with c, joined *pipeline.FieldErrors whose Field is
// the name in YAML, or nil. It reads the files that c.TLS names, and asks no broker.
func (c Config) Validate() error {
	errs := []error{c.cluster().Validate()}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
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
	return errors.Join(errs...)
}

// withDefaults returns c with every default filled in, other than Replication, which
// depends on how many brokers there are.
func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Lanes == 0 {
		c.Lanes = defaultLanes
	}
	if c.Group == "" {
		if c.Group = strings.TrimSuffix(c.Prefix, "."); c.Group == "" {
			c.Group = strings.TrimSuffix(DefaultPrefix, ".")
		}
	}
	if c.MaxPause == 0 {
		c.MaxPause = time.Second
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = cluster.DefaultSessionTimeout
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

// cluster is where the brokers of c are.
func (c Config) cluster() cluster.Config {
	return cluster.Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL}
}

// admin is what the topics of c are to be like. c has its defaults.
func (c Config) admin() admin.Config {
	return admin.Config{
		Config: c.cluster(), Prefix: c.Prefix, Group: c.Group, Lanes: c.Lanes, Replication: c.Replication, NoCreate: c.CreateTopics != nil && !*c.CreateTopics, Logger: c.Logger,
	}
}

// Register makes the configuration know the transport "kafka".
func Register(r *registry.Registry) {
	r.Transport("kafka", func() registry.Transport { return new(Config) })
}

// Open makes the transport, which begins with Start.
func (c Config) Open() (flow.Transport, error) { return New(c) }

// Check compares the cluster of c with what a Transport with topics (names without the
// prefix) needs, and changes nothing. It returns lines for people: the topics that stand, those
// that a start would make, and warnings. The error joins all that a start would refuse, or says
// why the brokers cannot be asked; it comes within 5 s.
func Check(ctx context.Context, c Config, topics map[string]flow.Topic) ([]string, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return admin.Check(ctx, c.withDefaults().admin(), topics)
}

// Export writes to w what the groups of c keep in Kafka, as it is committed. No process may
// work with the topics meanwhile: Export refuses where one does, and gives up the open
// transaction of one that is frozen. It refuses while a message of c.Topics waits for one of
// its groups, since messages stay behind; with leave it goes on, and returns what is left
// behind, a line for each group and topic. Topics that do not fit any more (see Check) are no
// obstacle. It waits for brokers until ctx is done, and writes nothing to the topics but
// fences. The caller closes w.
func Export(ctx context.Context, c Config, w *portable.Writer, leave bool) (left []string, err error) {
	o, err := c.offline()
	if err != nil {
		return nil, err
	}
	return offline.Export(ctx, o, w, leave)
}

// Import makes the topics of c where they are missing and puts what is in e into them, all of
// it in one transaction or, after an error, nothing. The topics must be empty and no process
// may work with them; one that starts meanwhile waits for the end of the import. The
// transaction may last 15 minutes. The groups go on from new positions. Import waits for
// brokers until ctx is done. Its errors say what to do.
func Import(ctx context.Context, c Config, e *portable.Export) error {
	o, err := c.offline()
	if err != nil {
		return err
	}
	return offline.Import(ctx, o, e)
}

// offline is c for the export and the import of the state.
func (c Config) offline() (offline.Config, error) {
	if err := c.Validate(); err != nil {
		return offline.Config{}, err
	}
	c = c.withDefaults()
	return offline.Config{Config: c.admin(), Topics: c.Topics, Now: c.Now, MemTable: memTable}, nil
}
