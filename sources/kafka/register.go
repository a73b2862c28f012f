package kafka

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

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
