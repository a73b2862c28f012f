package stdout

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a stdout.
type Config struct {
	// Format is text or json. Default: text on a terminal, json otherwise.
	Format string `yaml:"format"`
	// Color is always or never. Default: on a terminal, unless NO_COLOR is set.
	Color string `yaml:"color"`

	// Writer is where to print; nil means os.Stdout.
	Writer io.Writer `yaml:"-"`
	// Location is the time zone of the times in texts; nil means the local one.
	Location *time.Location `yaml:"-"`
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Stdout, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var w io.Writer = os.Stdout
	if c.Writer != nil {
		w = c.Writer
	}
	s := &Stdout{w: w, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	tty := isTerminal(w)
	if c.Format == FormatJSON || (c.Format == "" && !tty) {
		s.encode = encodeJSON
		return s, nil
	}
	p := printer{color: c.Color == ColorAlways, location: cmp.Or(c.Location, time.Local)}
	if c.Color == "" {
		// https://no-color.org
		p.color = tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	s.encode = func(n pipeline.Notification) ([]byte, error) {
		if p := p; tty { // the window may have changed
			p.width = terminalWidth(w)
			return p.print(n)
		}
		return p.print(n)
	}
	return s, nil
}

func (c Config) check() error {
	var errs []error
	if f := c.Format; f != "" && f != FormatText && f != FormatJSON {
		errs = append(errs, &pipeline.FieldError{Field: "format", Reason: fmt.Sprintf("%q is neither text nor json", f)})
	}
	if f := c.Color; f != "" && f != ColorAlways && f != ColorNever {
		errs = append(errs, &pipeline.FieldError{Field: "color", Reason: fmt.Sprintf("%q is neither always nor never", f)})
	}
	return errors.Join(errs...)
}

// Register makes the configuration know the kind of sink "stdout". What the configuration
// leaves open is as in byDefault.
func Register(r *registry.Registry, byDefault Config) {
	registry.AddSink(r, "stdout", func(c Config, _ registry.Env) (*Stdout, error) {
		c.Format, c.Color = cmp.Or(c.Format, byDefault.Format), cmp.Or(c.Color, byDefault.Color)
		c.Writer, c.Location = byDefault.Writer, byDefault.Location
		return New(c)
	})
}
