package kafka

import (
	"log/slog"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
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
	// TLS and SASL say how brokers and process prove who they are.
	TLS  TLS  `yaml:"tls"`
	SASL SASL `yaml:"sasl"`
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

// Register makes the configuration know the transport "kafka".
func Register(r *registry.Registry) {
	r.Transport("kafka", func() registry.Transport { return new(Config) })
}

// Open makes the transport, which begins with Start.
func (c Config) Open() (flow.Transport, error) { return New(c) }

// creates reports whether topics that are missing are made.
func (c Config) creates() bool { return c.CreateTopics == nil || *c.CreateTopics }
