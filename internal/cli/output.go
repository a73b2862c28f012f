package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/vokter/vokter/pipeline"
)

// outputError says that results cannot be printed.
type outputError struct{ err error }

func (e *outputError) Error() string {
	why := e.err
	if pe, ok := errors.AsType[*fs.PathError](why); ok {
		why = pe.Err
	}
	return fmt.Sprintf("standard output cannot be written to: %v", why)
}

func (e *outputError) Unwrap() error { return e.err }

// mandatory is a sink whose first failed write ends the run: who watches in a terminal
// or a pipe is gone when that is.
type mandatory struct {
	next pipeline.Sink
	end  context.CancelCauseFunc
}

var _ pipeline.Sink = mandatory{}

// Deliver passes n on. What is refused for good, and a writer that only blocks, end nothing.
func (m mandatory) Deliver(ctx context.Context, n pipeline.Notification) error {
	err := m.next.Deliver(ctx, n)
	if class, _ := pipeline.ClassOf(err); err != nil && ctx.Err() == nil && class != pipeline.ClassPermanent {
		m.end(&outputError{err})
	}
	return err
}

// endedBy returns why ctx was ended if that was the output or a page that was given up, and err
// otherwise: what else went wrong then follows from it.
func endedBy(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if out, ok := errors.AsType[*outputError](why); ok {
		return out
	}
	if errors.Is(why, errGivenUp) {
		return errors.Join(errGivenUp, err)
	}
	return err
}

// reportBrokenPipes makes writing to a closed pipe an error where w is the process's own
// output; it would end the process without a word.
func reportBrokenPipes(w io.Writer) {
	if w == io.Writer(os.Stdout) {
		signal.Ignore(syscall.SIGPIPE)
	}
}
