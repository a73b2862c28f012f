// Package stdout is the sink that prints notifications: as text for people on a
// terminal, as one JSON object per line otherwise.
package stdout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Formats and colours.
const (
	FormatText = "text"
	FormatJSON = "json"

	ColorAlways = "always"
	ColorNever  = "never"
)

// Config is the configuration of a stdout sink.
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

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Stdout, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var w io.Writer = os.Stdout
	if c.Writer != nil {
		w = c.Writer
	}
	s := &Stdout{w: w, writeToken: make(chan struct{}, 1)}
	s.writeToken <- struct{}{}
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
			return p.format(n)
		}
		return p.format(n)
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

// Register registers the kind of sink "stdout" with r. byDefault has the values for what a
// configuration does not set.
func Register(r *registry.Registry, byDefault Config) {
	registry.AddSink(r, "stdout", func(c Config, _ registry.Env) (*Stdout, error) {
		c.Format, c.Color = cmp.Or(c.Format, byDefault.Format), cmp.Or(c.Color, byDefault.Color)
		c.Writer, c.Location = byDefault.Writer, byDefault.Location
		return New(c)
	})
}

// Stdout prints notifications to a writer, each with one call of Write. It is safe for
// concurrent use.
type Stdout struct {
	w      io.Writer
	encode func(pipeline.Notification) ([]byte, error)
	// writeToken holds a token while no write is in progress.
	writeToken chan struct{}
	// midLine says that the last write ended within a line; lateID is the ID of the
	// notification that was written after its Deliver had given up. Both belong to the
	// holder of the token.
	midLine bool
	lateID  string
}

var _ pipeline.Sink = (*Stdout)(nil)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the width of the terminal w in columns, or 0.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Deliver prints n. When ctx ends before a blocked writer has taken it, the write goes
// on alone; if it succeeds in the end, the next attempt for n finds it done.
func (s *Stdout) Deliver(ctx context.Context, n pipeline.Notification) error {
	b, err := s.encode(n)
	if err != nil {
		return failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.writeToken:
	case <-ctx.Done():
		return fmt.Errorf("the output is blocked: %w", ctx.Err())
	}
	if s.lateID == n.ID && n.ID != "" {
		s.writeToken <- struct{}{}
		return nil
	}
	done := make(chan error)
	go func() {
		err := s.write(b)
		select {
		case done <- err:
			s.lateID = ""
		case <-ctx.Done():
			if s.lateID = ""; err == nil {
				s.lateID = n.ID
			}
		}
		s.writeToken <- struct{}{}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return failure.Ambiguous(fmt.Errorf("the output is blocked: %w", ctx.Err()))
	}
}

// write begins a new line where the last write broke off.
func (s *Stdout) write(b []byte) error {
	if s.midLine {
		b = append([]byte("\n"), b...)
	}
	n, err := s.w.Write(b)
	if n > 0 {
		s.midLine = b[min(n, len(b))-1] != '\n'
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
