package config

import (
	"time"

	"github.com/vokter/vokter/pipeline/registry"
)

// Kafka says which cluster carries messages and state, and how it is used. What it does not
// say, a program that makes a transport of it decides. Make one with NewKafka.
type Kafka struct {
	// Brokers are some of the cluster's, HOST:PORT each; the others are found.
	Brokers []string `yaml:"brokers"`
	// TopicPrefix begins the names of all topics. Empty: "vokter.".
	TopicPrefix string `yaml:"topic_prefix"`
	// Partitions and Replication are those of topics that are made. 0: not given.
	Partitions  int `yaml:"partitions"`
	Replication int `yaml:"replication"`
	// CreateTopics makes topics that are missing.
	CreateTopics bool `yaml:"create_topics"`
	// Group is the consumer group in which processes share the work. Empty: not given.
	Group string `yaml:"group"`
	// InstanceID is a name of this process that it keeps over restarts. Empty: none.
	InstanceID string `yaml:"instance_id"`
	// SessionTimeout is after how long without a sign of life others take over. 0: not given.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// TLS and SASL say how brokers and process prove who they are.
	TLS  KafkaTLS  `yaml:"tls"`
	SASL KafkaSASL `yaml:"sasl"`
}

// KafkaTLS says how the connection to brokers is encrypted. CA, Cert and Key are PEM files.
type KafkaTLS struct {
	Enable     bool   `yaml:"enable"`
	CA         string `yaml:"ca"`
	Cert       string `yaml:"cert"`
	Key        string `yaml:"key"`
	ServerName string `yaml:"server_name"`
	Insecure   bool   `yaml:"insecure"`
}

// KafkaSASL says as whom a process logs in: nobody where Mechanism is empty.
type KafkaSASL struct {
	Mechanism string          `yaml:"mechanism"`
	User      string          `yaml:"user"`
	Password  registry.Secret `yaml:"password"`
}

// NewKafka returns a Kafka with defaults, which makes the topics that are missing.
func NewKafka(brokers ...string) *Kafka { return &Kafka{Brokers: brokers, CreateTopics: true} }
