// Package pdf reads PDF by the program pdftotext of Poppler.
package pdf

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
)

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
	out, complaint := &blocks.Output{End: cancel}, &blocks.Complaint{}
	args := append(slices.Clone(r.command), "-enc", "UTF-8", "-nopgbrk", "-", "-")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second // for what it may have started
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(raw.Body), out, complaint
	err := cmd.Run()
	switch {
	case out.IsFull:
		return pipeline.Text{}, blocks.TooLarge()
	case ctx.Err() != nil:
		return pipeline.Text{}, ctx.Err()
	case err != nil:
		return pipeline.Text{}, blocks.Unreadable("pdftotext cannot read the page: %s", cmp.Or(complaint.Line(), err.Error()))
	}
	raw.Body, raw.ContentType = bytes.ToValidUTF8(out.Bytes(), []byte("\ufffd")), "text/plain"
	return plain.New().Read(ctx, raw, view)
}
