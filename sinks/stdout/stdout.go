// Package stdout is the sink that prints notifications: as text for people on a
// terminal, as one JSON object per line otherwise.
package stdout

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/vokter/vokter/pipeline"
)

// Formats and colours.
const (
	FormatText = "text"
	FormatJSON = "json"

	ColorAlways = "always"
	ColorNever  = "never"
)

// Options alter a Stdout. The zero Options decide by the writer and the environment.
type Options struct {
	// Format is FormatText, FormatJSON, or empty: text on a terminal, JSON otherwise.
	Format string
	// Color is ColorAlways, ColorNever, or empty: on a terminal, unless the environment has
	// NO_COLOR (https://no-color.org) or TERM=dumb.
	Color string
	// Location is the time zone of the times in texts; nil means the local one.
	Location *time.Location
}

// Validate returns what is wrong with o, as a *pipeline.FieldError, or nil.
func (o Options) Validate() error {
	switch o.Format {
	case "", FormatText, FormatJSON:
	default:
		return &pipeline.FieldError{Field: "format", Reason: fmt.Sprintf("%q is neither text nor json", o.Format)}
	}
	switch o.Color {
	case "", ColorAlways, ColorNever:
		return nil
	}
	return &pipeline.FieldError{Field: "color", Reason: fmt.Sprintf("%q is neither always nor never", o.Color)}
}

// Stdout prints notifications to a writer, each with one call of Write. It is safe for
// concurrent use.
type Stdout struct {
	w      io.Writer
	encode func(pipeline.Notification) ([]byte, error)
	err    error
	// turn holds a token while nobody writes.
	turn chan struct{}
	// torn says that the last write broke off within a line; late is the ID of the
	// notification that was written after its Deliver had given up. Both belong to the
	// holder of the token.
	torn bool
	late string
}

var _ pipeline.Sink = (*Stdout)(nil)

// New returns a Stdout that prints to w. Options that are not valid are reported by
// Deliver, as a permanent error.
func New(w io.Writer, o Options) *Stdout {
	s := &Stdout{w: w, err: o.Validate(), turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	tty := isTerminal(w)
	if o.Format == FormatJSON || (o.Format == "" && !tty) {
		s.encode = encodeJSON
		return s
	}
	p := printer{color: o.Color == ColorAlways, location: o.Location}
	if o.Color == "" {
		p.color = tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if p.location == nil {
		p.location = time.Local
	}
	s.encode = func(n pipeline.Notification) ([]byte, error) {
		if p := p; tty { // the window may have changed
			p.width = terminalWidth(w)
			return p.print(n)
		}
		return p.print(n)
	}
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is that of w in columns, or 0.
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
	if s.err != nil {
		return pipeline.Permanent(s.err)
	}
	b, err := s.encode(n)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return fmt.Errorf("the output is blocked: %w", ctx.Err())
	}
	if s.late == n.ID && n.ID != "" {
		s.turn <- struct{}{}
		return nil
	}
	done := make(chan error)
	go func() {
		err := s.write(b)
		select {
		case done <- err:
			s.late = ""
		case <-ctx.Done():
			if s.late = ""; err == nil {
				s.late = n.ID
			}
		}
		s.turn <- struct{}{}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return pipeline.Ambiguous(fmt.Errorf("the output is blocked: %w", ctx.Err()))
	}
}

// write begins a new line where the last write broke off.
func (s *Stdout) write(b []byte) error {
	if s.torn {
		b = append([]byte("\n"), b...)
	}
	n, err := s.w.Write(b)
	if n > 0 {
		s.torn = b[min(n, len(b))-1] != '\n'
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
