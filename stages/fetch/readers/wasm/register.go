package wasm

import (
	"path/filepath"
	"time"

	"github.com/vokter/vokter/pipeline/registry"
)

// yamlOptions are those of a reader in a configuration.
type yamlOptions struct {
	Wasm    registry.File `yaml:"wasm"`
	Types   []string      `yaml:"types"`
	Memory  registry.Size `yaml:"memory"`
	Timeout time.Duration `yaml:"timeout"`
}

// Register makes r know readers of the kind wasm.
func Register(r *registry.Registry) {
	registry.AddReader(r, "wasm", func(o yamlOptions, _ registry.Env) (*Reader, error) {
		return New(Config{
			Name: filepath.Base(o.Wasm.Path), Module: o.Wasm.Content, Types: o.Types, Memory: int64(o.Memory), Timeout: o.Timeout,
		})
	})
}
