package cli

import (
	"bufio"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/sinks/stdout"
)

// results prints what a verb found: as text for people, or as one JSON object per line.
// The first error is kept.
type results struct {
	w    *bufio.Writer
	json bool
	now  time.Time
	// columns is how wide the terminal is; 0: there is none, and lines are not broken.
	columns int
	err     error
}

func (a *app) results() *results {
	return &results{w: bufio.NewWriter(a.stdout), json: a.flags.format == stdout.FormatJSON, now: time.Now(), columns: terminalColumns(a.stdout)}
}

// object prints v, where that is the format.
func (r *results) object(v any) {
	if !r.json || r.err != nil {
		return
	}
	b, err := stdout.EncodeJSON(v)
	if err == nil {
		_, err = r.w.Write(b)
	}
	r.err = err
}

// text prints a line, where that is the format. Its arguments, which may come from pages and
// receivers, cannot steer a terminal.
func (r *results) text(format string, args ...any) {
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

// widest is how wide a column of a table gets, in runes; longer cells stick out.
const widest = 40

// table prints rows behind indent, as lines with aligned columns; widths are the least ones
// of the first columns.
func (r *results) table(indent string, rows [][]string, widths ...int) {
	if r.json {
		return
	}
	for _, row := range rows {
		for i := range row {
			row[i] = render.Clean(row[i])
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(row[i]); n <= widest {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if widths[i] == 0 && cell == "" {
				continue // nobody has it
			}
			b.WriteString(cell + strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0)+2))
		}
		r.write(render.Wrap(indent+strings.TrimRight(b.String(), " "), r.columns, 4) + "\n")
	}
}

func (r *results) write(s string) {
	if r.err == nil {
		_, r.err = r.w.WriteString(s)
	}
}

// end writes out what is buffered.
func (r *results) end() error {
	if r.err == nil {
		r.err = r.w.Flush()
	}
	if r.err != nil {
		return &outputError{r.err}
	}
	return nil
}
