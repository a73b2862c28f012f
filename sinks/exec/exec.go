package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Exec runs one command for each notification. It is safe for concurrent use.
type Exec struct {
	path    string
	args    []string // with the program as it was written
	env     []string
	secrets outbound.Scrubber
}

var _ pipeline.Sink = (*Exec)(nil)

// pipesFor is how long the pipes of a command are read after it has ended, as something
// that it left behind may hold them.
const pipesFor = time.Second

// Deliver runs the command with n. When ctx is done it kills the command with its process
// group, and returns once that has ended.
func (e *Exec) Deliver(ctx context.Context, n pipeline.Notification) error {
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the command was not run: %w", err)
	}
	stderr := tail{keep: maxTail + e.secrets.Longest()} // so much may have to be left out
	cmd := exec.CommandContext(ctx, e.path)
	cmd.Args, cmd.Env = e.args, e.env
	cmd.Stdin, cmd.Stderr = bytes.NewReader(append(body, '\n')), &stderr
	cmd.WaitDelay = pipesFor
	alone(cmd)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the command could not be run: %s", e.secrets.Clean(err.Error()))
	}
	err = cmd.Wait()
	if cmd.ProcessState.Success() {
		return nil // also where what it left behind holds its pipes
	}
	if ctx.Err() != nil && mayBeKilled(cmd.ProcessState) {
		name := filepath.Base(e.path)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return pipeline.Ambiguous(fmt.Errorf("%s was killed after %s, when it had not ended; the option timeout beside exec gives it more time",
				name, time.Since(began).Round(100*time.Millisecond)))
		}
		return pipeline.Ambiguous(fmt.Errorf("%s was killed before it had ended: %w", name, ctx.Err()))
	}
	return e.verdict(cmd.ProcessState.ExitCode(), err, last(e.clean(stderr)))
}

// The exit statuses that mean something, of sysexits.h.
const (
	exDataErr = 65
	exNoUser  = 67
	exNoPerm  = 77
	exConfig  = 78
)

// verdict says what the exit status code means; it is -1 where a signal ended the command.
func (e *Exec) verdict(code int, err error, reason string) error {
	text := fmt.Sprintf("%s: %v", filepath.Base(e.path), err)
	if reason = render.Short(render.Clean(reason), maxReason); reason != "" {
		text += ": " + reason
	}
	failure := errors.New(text)
	switch code {
	case -1:
		return pipeline.Ambiguous(failure)
	case exDataErr:
		return pipeline.Refused(failure)
	case exNoUser:
		return pipeline.Gone(failure)
	case exNoPerm, exConfig:
		return pipeline.TellAtOnce(failure)
	}
	return failure
}

// Bounds of the reason: of what is kept of the standard error, in bytes, and of what is told
// of it, in runes.
const (
	maxTail   = 4 << 10
	maxReason = 200
)

// tail keeps the end of what is written to it, so many bytes. cut says that it is not all.
type tail struct {
	keep int
	b    []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.cut = t.cut || len(t.b)+len(p) > t.keep
	t.b = append(t.b, p[max(0, len(p)-t.keep):]...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-t.keep):]...)
	return len(p), nil
}

// clean is t as text without secrets. One of which t has only the end is not known any more,
// so that the beginning is left out that may be such an end.
func (e *Exec) clean(t tail) string {
	text := e.secrets.Clean(string(t.b))
	if t.cut {
		text = text[min(e.secrets.Longest(), len(text)):]
	}
	return text
}

// last returns the last line of text that says something. Secrets have to be out of it: they may
// have several lines.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
