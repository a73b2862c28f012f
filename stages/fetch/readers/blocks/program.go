package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of what a program writes that reads a page, in bytes.
const (
	// MaxOutput is that of its output: a text of the largest size, with its white space or as JSON.
	MaxOutput = 4 * pipeline.MaxText
	// maxComplaint is how much is kept of its messages, and maxQuoted how much of them a reason quotes.
	maxComplaint = 4096
	maxQuoted    = 200
)

// Output is the output of a program, at most MaxOutput bytes. The program is ended by End when there are more.
type Output struct {
	End    func()
	IsFull bool
	buf    bytes.Buffer // not embedded: its ReadFrom knows no limit
}

var errOutputFull = errors.New("too much output")

func (o *Output) Write(p []byte) (int, error) {
	if o.buf.Len()+len(p) > MaxOutput {
		o.IsFull = true
		o.End()
		return 0, errOutputFull
	}
	return o.buf.Write(p)
}

// Bytes returns what was written.
func (o *Output) Bytes() []byte { return o.buf.Bytes() }

// Complaint keeps the beginning of the messages of a program.
type Complaint struct{ kept []byte }

func (c *Complaint) Write(p []byte) (int, error) {
	c.kept = append(c.kept, p[:min(len(p), maxComplaint-len(c.kept))]...)
	return len(p), nil
}

// Line returns the first line that is not blank.
func (c *Complaint) Line() string { return FirstLine(string(c.kept)) }

// FirstLine returns the first line of s that is not blank, to be quoted: it is cut, and without the characters that
// cannot be printed, since it may quote the page.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.ToValidUTF8(line[:min(len(line), maxQuoted)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line))
}

// Passed collects what a reader passes over in a page that is not quite what its type says, for
// pipeline.Text.Passed. The zero Passed is ready for use.
type Passed struct{ kinds []passedKind }

// passedKind is how often something was passed over that is written as one or, with a number before it, as many.
type passedKind struct {
	one, many   string
	count, line int
}

// Note notes what stands at offset at in body: as one says, such as "a control character is dropped", or, with a
// number before it, as many says, such as "control characters are dropped".
func (p *Passed) Note(one, many string, body []byte, at int) {
	i := slices.IndexFunc(p.kinds, func(k passedKind) bool { return k.one == one })
	if i < 0 {
		line := bytes.Count(body[:min(max(at, 0), len(body))], []byte{'\n'}) + 1
		i, p.kinds = len(p.kinds), append(p.kinds, passedKind{one: one, many: many, line: line})
	}
	p.kinds[i].count++
}

// Sentences returns what was noted, nil if that is nothing.
func (p *Passed) Sentences() []string {
	var out []string
	for _, k := range p.kinds {
		if k.count == 1 {
			out = append(out, fmt.Sprintf("%s, in line %d", k.one, k.line))
		} else {
			out = append(out, fmt.Sprintf("%d %s, the first in line %d", k.count, k.many, k.line))
		}
	}
	return out
}
