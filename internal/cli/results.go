package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/sinks/stdout"
)

// results prints the results of a verb as text for people, or as one JSON object per line. It
// keeps the first error.
type results struct {
	w    *bufio.Writer
	json bool
	now  time.Time
	// columns is the width of the terminal. It is 0 if there is none; lines are not wrapped
	// then.
	columns int
	// stopped says that no process runs the data directory.
	stopped bool
	err     error
}

// newResults returns results that are written to standard output.
func (a *app) newResults() *results {
	return &results{w: bufio.NewWriter(a.stdout), json: a.flags.format == stdout.FormatJSON, now: time.Now(), columns: terminalColumns(a.stdout)}
}

// printDone reports a result of a kind: v as JSON, or the text.
func (r *results) printDone(kind string, v any, format string, args ...any) {
	r.printJSON(kind, v)
	r.printLine(format, args...)
}

// dueText says when something comes that is due at at.
func (r *results) dueText(at time.Time) string {
	switch {
	case at.After(r.now):
		return formatTime(at, r.now)
	case r.stopped:
		return "when a process starts"
	}
	return "is due"
}

// printJSON prints v, an object of a kind, if the format is JSON.
func (r *results) printJSON(kind string, v any) { r.printObject(v, "kind", kind) }

// printNothing says that there is nothing to report, and why.
func (r *results) printNothing(why string) {
	r.printDone("nothing", struct {
		Message string `json:"message"`
	}{why}, "%s", why)
}

// printObject prints the object v behind fields, pairs of name and value, if the format is JSON.
func (r *results) printObject(v any, fields ...string) {
	if !r.json || r.err != nil {
		return
	}
	b, err := stdout.EncodeJSON(v)
	if err != nil {
		r.err = err
		return
	}
	for i := len(fields) - 2; i >= 0; i -= 2 {
		head, _ := stdout.EncodeJSON(map[string]string{fields[i]: fields[i+1]}) // cannot fail
		end := bytes.TrimRight(head, "}\n")
		if !bytes.HasPrefix(b, []byte("{}")) {
			end = append(end, ',')
		}
		b = append(end, b[1:]...)
	}
	_, r.err = r.w.Write(b)
}

// printAll prints each of all as an object of a kind or, if the format is text, a table with its row. indent and
// widths are those of printTable.
func printAll[T any](r *results, kind, indent string, all []T, row func(T) []string, widths ...int) {
	rows := make([][]string, 0, len(all))
	for _, v := range all {
		r.printJSON(kind, v)
		rows = append(rows, row(v))
	}
	r.printTable(indent, rows, widths...)
}

// printLine prints a line if the format is text. It removes control characters from the arguments,
// which may come from pages and receivers.
func (r *results) printLine(format string, args ...any) {
	if r.json || r.err != nil {
		return
	}
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = render.Clean(s)
		}
	}
	r.write(render.Wrap(fmt.Sprintf(format, args...), r.columns, 2) + "\n")
}

// maxColumnWidth is the greatest width of a table column, in runes. Longer cells stick out.
const maxColumnWidth = 40

// printTable prints rows with aligned columns, each line behind indent. widths are the least widths
// of the first columns.
func (r *results) printTable(indent string, rows [][]string, widths ...int) {
	if r.json {
		return
	}
	for _, row := range rows {
		for i := range row {
			row[i] = render.Clean(row[i])
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(row[i]); n <= maxColumnWidth {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if widths[i] == 0 && cell == "" {
				continue // the column is empty in all rows
			}
			b.WriteString(cell + strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0)+2))
		}
		r.write(render.Wrap(indent+strings.TrimRight(b.String(), " "), r.columns, 4) + "\n")
	}
}

// write writes s as it is.
func (r *results) write(s string) {
	if r.err == nil {
		_, r.err = r.w.WriteString(s)
	}
}

// flush flushes the buffer and returns the first error.
func (r *results) flush() error {
	if r.err == nil {
		r.err = r.w.Flush()
	}
	if r.err != nil {
		return &outputError{r.err}
	}
	return nil
}

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

// mandatorySink is a sink whose first failed write ends the run: nobody reads a closed terminal or
// pipe.
type mandatorySink struct {
	next pipeline.Sink
	end  context.CancelCauseFunc
}

var _ pipeline.Sink = mandatorySink{}

// Deliver delivers n to the sink. Permanent errors, and errors after ctx is done, do not end
// the run.
func (m mandatorySink) Deliver(ctx context.Context, n pipeline.Notification) error {
	err := m.next.Deliver(ctx, n)
	if class, _ := failure.ClassOf(err); err != nil && ctx.Err() == nil && class != failure.ClassPermanent {
		m.end(&outputError{err})
	}
	return err
}

// causeOrError returns the cause of ctx if the output failed or the page expired, because err is then
// only a consequence. Otherwise it returns err.
func causeOrError(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if out, ok := errors.AsType[*outputError](why); ok {
		return out
	}
	if errors.Is(why, errPageExpired) {
		return errors.Join(errPageExpired, err)
	}
	return err
}

// reportBrokenPipes makes writes to a closed pipe return an error if w is the process's own
// output. By default they end the process without a message.
func reportBrokenPipes(w io.Writer) {
	if w == io.Writer(os.Stdout) {
		signal.Ignore(syscall.SIGPIPE)
	}
}
