// Package pdf reads PDF by the program pdftotext of Poppler.
package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
)

// maxOutput is how much of what pdftotext writes is taken, in bytes: a text that is larger than
// any may be, with its white space.
const maxOutput = 4 * pipeline.MaxText

// Reader reads PDF. It is no built-in reader: pages come from anywhere, and parsers of PDF are
// large and have had many faults. pdftotext is a process of its own that gets the page by its
// standard input, writes the text to its standard output, sees no environment, ends with the time
// limit of the check, and where there is a shell may use 1 GiB of memory. Pure Go parsers lose the
// spaces of many PDFs, which makes keywords impossible to find.
type Reader struct{ command []string }

var _ pipeline.Reader = Reader{}

// New returns a Reader that runs command, such as "pdftotext". It returns an error where there is
// no such program.
func New(command string) (Reader, error) {
	path, err := exec.LookPath(command)
	if err != nil {
		return Reader{}, fmt.Errorf("there is no program %q to read PDF; install poppler-utils: %w", command, err)
	}
	if shell, err := exec.LookPath("sh"); err == nil {
		return Reader{[]string{shell, "-c", `ulimit -v 1048576; exec "$@"`, "sh", path}}, nil
	}
	return Reader{[]string{path}}, nil
}

// ContentTypes returns the media types of PDF.
func (Reader) ContentTypes() []string { return []string{"application/pdf", "application/x-pdf"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "pdf/1" }

// Read returns the text of view, as plain text: its line ranges and regular expressions count.
func (r Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(raw.Body, "\r\n\t \x00"), []byte("%PDF-")) {
		return pipeline.Text{}, blocks.Unreadable("the page is not a PDF: it does not begin with %%PDF- at line 1")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &limitedBuffer{cancel: cancel}
	var complaint stderrHead
	args := append(slices.Clone(r.command), "-enc", "UTF-8", "-nopgbrk", "-", "-")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second // for what it may have started
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(raw.Body), out, &complaint
	err := cmd.Run()
	switch {
	case out.isFull:
		return pipeline.Text{}, blocks.TooLarge()
	case ctx.Err() != nil:
		return pipeline.Text{}, ctx.Err()
	case err != nil:
		why := complaint.firstLine()
		if why == "" {
			why = err.Error()
		}
		return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("pdftotext cannot read the page: %.200s", why), Err: err}
	}
	raw.Body, raw.ContentType = bytes.ToValidUTF8(out.buf.Bytes(), []byte("\ufffd")), "text/plain"
	return plain.New().Read(ctx, raw, view)
}

// limitedBuffer is a buffer of at most maxOutput bytes. The program is ended when there are more.
type limitedBuffer struct {
	buf    bytes.Buffer // not embedded: its ReadFrom knows no limit
	isFull bool
	cancel func()
}

// maxStderr is how many bytes of the messages of pdftotext are kept.
const maxStderr = 1000

// stderrHead keeps the first maxStderr bytes that are written to it.
type stderrHead struct{ kept []byte }

func (f *stderrHead) Write(p []byte) (int, error) {
	f.kept = append(f.kept, p[:min(len(p), maxStderr-len(f.kept))]...)
	return len(p), nil
}

// firstLine returns the first line that is not blank, without the characters that cannot be printed: it may
// quote the page.
func (f *stderrHead) firstLine() string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(f.kept), "")), "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, first))
}

var errOutputFull = errors.New("too much output")

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.buf.Len()+len(p) > maxOutput {
		l.isFull = true
		if l.cancel != nil {
			l.cancel()
		}
		return 0, errOutputFull
	}
	return l.buf.Write(p)
}
