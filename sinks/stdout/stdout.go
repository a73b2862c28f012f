// Package stdout is the sink that prints notifications: as text for people on a
// terminal, as one JSON object per line otherwise.
package stdout

import (
	"context"
	"fmt"
	"io"
	"os"

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

// Stdout prints notifications to a writer, each with one call of Write. It is safe for
// concurrent use.
type Stdout struct {
	w      io.Writer
	encode func(pipeline.Notification) ([]byte, error)
	// turn holds a token while nobody writes.
	turn chan struct{}
	// torn says that the last write broke off within a line; late is the ID of the
	// notification that was written after its Deliver had given up. Both belong to the
	// holder of the token.
	torn bool
	late string
}

var _ pipeline.Sink = (*Stdout)(nil)

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
