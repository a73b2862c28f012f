package kafka

import (
	"github.com/vokter/vokter/pipeline"
	transport "github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/registry"
)

// options are what a configuration says of a source.
type options struct {
	Brokers []string `yaml:"brokers"`
	Topic   string   `yaml:"topic"`
	Group   string   `yaml:"group"`
	TLS     struct {
		Enable     bool   `yaml:"enable"`
		CA         string `yaml:"ca"`
		Cert       string `yaml:"cert"`
		Key        string `yaml:"key"`
		ServerName string `yaml:"server_name"`
		Insecure   bool   `yaml:"insecure"`
	} `yaml:"tls"`
	SASL struct {
		Mechanism string          `yaml:"mechanism"`
		User      string          `yaml:"user"`
		Password  registry.Secret `yaml:"password"`
	} `yaml:"sasl"`
}

// Register registers the kind of source "kafka" in r.
func Register(r *registry.Registry) {
	r.Source("kafka", func(decode registry.Decode, _ registry.Env) (pipeline.Source, error) {
		var o options
		if err := decode(&o); err != nil {
			return nil, err
		}
		s := New(Config{
			Brokers: o.Brokers, Topic: o.Topic, Group: o.Group, TLS: transport.TLS(o.TLS),
			SASL: transport.SASL{Mechanism: o.SASL.Mechanism, User: o.SASL.User, Password: o.SASL.Password.Reveal()},
		})
		if err := s.Validate(); err != nil {
			return nil, err
		}
		return s, nil
	})
}
