package stdout

import (
	"cmp"
	"io"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a stdout.
type Config struct {
	// Format is text or json. Default: text on a terminal, json otherwise.
	Format string `yaml:"format"`
	// Color is always or never. Default: on a terminal, unless NO_COLOR is set.
	Color string `yaml:"color"`
}

// Register makes the configuration know the kind of sink "stdout", which prints to w.
// What the configuration leaves open is as in byDefault.
func Register(r *registry.Registry, w io.Writer, byDefault Options) {
	r.Sink("stdout", func(decode registry.Decode, _ registry.Env) (pipeline.Sink, error) {
		var c Config
		if err := decode(&c); err != nil {
			return nil, err
		}
		o := byDefault
		o.Format, o.Color = cmp.Or(c.Format, o.Format), cmp.Or(c.Color, o.Color)
		if err := o.Validate(); err != nil {
			return nil, err
		}
		return New(w, o), nil
	})
}
