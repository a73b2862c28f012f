// Package exec is the sink that runs a command of the operator's for each notification. The
// command gets the documented JSON on its standard input, in one line, and reports the
// result by its exit status:
//
//	0    delivered
//	65   the notification is refused (EX_DATAERR): tried again a few times, then given up,
//	     and the next one follows
//	67   the receiver does not exist any more (EX_NOUSER): it is expired
//	77   not permitted (EX_NOPERM), and
//	78   not configured (EX_CONFIG): tried again, and reported at once by a health event
//	else tried again, such as 75 (EX_TEMPFAIL), or 1, with which most commands fail
//
// The last line of its standard error is the reason. What it prints is not read otherwise.
//
// No shell is involved: the arguments are those of the configuration, and no part of a
// notification is passed as one. A command that has not ended in time, by default within 20 seconds, is
// killed with its whole process group, and the notification is tried again; as it may have
// been delivered, the command should drop what it has seen by its id. A command that needs
// longer gets a timeout beside exec, such as timeout: 5m. A command has to manage the
// processes that it leaves in the background.
//
// Only a configuration file can name a command; neither a flag nor the API does.
package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of an exec sink.
type Config struct {
	// Command is the program and its arguments, such as [/usr/local/bin/notify, --urgent]. The
	// program is an absolute path, or a name that is looked up in PATH when the configuration
	// is read. It is not a line for a shell; for that write [/bin/sh, -c, "..."]. Required.
	Command []string `yaml:"command"`
	// Env are the variables of the command's environment, such as {API_KEY: "${API_KEY}"},
	// besides HOME, LANG, PATH, TMPDIR and TZ, which it has from this process. It has no
	// others. Default: none.
	Env map[string]registry.Secret `yaml:"env"`
}

// inheritedEnv lists the variables that a command inherits from this process.
var inheritedEnv = []string{"HOME", "LANG", "PATH", "TMPDIR", "TZ"}

// variableName matches the name of a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors. It looks for
// the program, and runs nothing.
func New(c Config) (*Exec, error) {
	var bad outbound.Mistakes
	path, err := c.lookUpProgram()
	bad.Add("command", err)
	for i, arg := range c.Command {
		if strings.ContainsRune(arg, 0) {
			bad.Addf(fmt.Sprintf("command[%d]", i), "an argument must not contain a NUL byte")
		}
	}
	e := &Exec{path: path, args: c.Command}
	for _, name := range inheritedEnv {
		if value, ok := os.LookupEnv(name); ok {
			e.env = append(e.env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name].Reveal()
		if !variableName.MatchString(name) {
			bad.Addf("env", "%q cannot be the name of a variable", name)
		}
		if strings.ContainsRune(value, 0) {
			bad.Addf("env", "the value of %s must not contain a NUL byte", name)
		}
		e.env = append(e.env, name+"="+value) // of two with one name the last counts
		e.secrets.Add(value)
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// lookUpProgram returns the path of the program, which it looks up in PATH.
func (c Config) lookUpProgram() (string, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return "", errors.New("a program is required, such as [/usr/local/bin/notify]")
	}
	name := c.Command[0]
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", fmt.Errorf("%q is a relative path, which depends on the working directory; write an absolute one", name)
	}
	path, err := exec.LookPath(name)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return "", fmt.Errorf("%q: %w", e.Name, e.Err)
	}
	return path, err
}

// Register registers the kind of sink "exec" with r.
func Register(r *registry.Registry) {
	registry.AddSink(r, "exec", func(c Config, _ registry.Env) (*Exec, error) { return New(c) })
}

// Exec runs one command for each notification. It is safe for concurrent use.
type Exec struct {
	path    string
	args    []string // with the program as it was written
	env     []string
	secrets outbound.Scrubber
}

var _ pipeline.Sink = (*Exec)(nil)

// pipeTimeout is how long the pipes of a command are read after it has ended, since a process
// that it left behind may hold them open.
const pipeTimeout = time.Second

// Deliver runs the command with n. When ctx is done it kills the command with its process
// group, and returns once that has ended.
func (e *Exec) Deliver(ctx context.Context, n pipeline.Notification) error {
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the command was not run: %w", err)
	}
	stderr := tailBuffer{limit: maxStderr + e.secrets.Longest()} // Clean may remove as much
	cmd := exec.CommandContext(ctx, e.path)
	cmd.Args, cmd.Env = e.args, e.env
	cmd.Stdin, cmd.Stderr = bytes.NewReader(append(body, '\n')), &stderr
	cmd.WaitDelay = pipeTimeout
	setProcessGroup(cmd)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the command could not be run: %s", e.secrets.Clean(err.Error()))
	}
	err = cmd.Wait()
	if cmd.ProcessState.Success() {
		return nil // even if a process that it left behind holds its pipes
	}
	if ctx.Err() != nil && mayHaveBeenKilled(cmd.ProcessState) {
		name := filepath.Base(e.path)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return failure.Ambiguous(fmt.Errorf("%s was killed after %s, when it had not ended; the option timeout beside exec gives it more time",
				name, time.Since(began).Round(100*time.Millisecond)))
		}
		return failure.Ambiguous(fmt.Errorf("%s was killed before it had ended: %w", name, ctx.Err()))
	}
	return e.classifyExit(cmd.ProcessState.ExitCode(), err, lastLine(e.cleanOutput(stderr)))
}

// The exit statuses that mean something, of sysexits.h.
const (
	exDataErr = 65
	exNoUser  = 67
	exNoPerm  = 77
	exConfig  = 78
)

// classifyExit classifies the exit status code, which is -1 if a signal ended the command.
func (e *Exec) classifyExit(code int, err error, reason string) error {
	text := fmt.Sprintf("%s: %v", filepath.Base(e.path), err)
	if reason = render.Short(render.Clean(reason), maxReason); reason != "" {
		text += ": " + reason
	}
	verdict := errors.New(text)
	switch code {
	case -1:
		return failure.Ambiguous(verdict)
	case exDataErr:
		return failure.Refused(verdict)
	case exNoUser:
		return failure.Gone(verdict)
	case exNoPerm, exConfig:
		return failure.TellAtOnce(verdict)
	}
	return verdict
}

// Bounds of the reason: how much of the standard error is kept, in bytes, and how much of it is
// reported, in runes.
const (
	maxStderr = 4 << 10
	maxReason = 200
)

// tailBuffer keeps the last bytes that are written to it, at most limit. truncated says that it dropped some.
type tailBuffer struct {
	limit     int
	buf       []byte
	truncated bool
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.truncated = t.truncated || len(t.buf)+len(p) > t.limit
	t.buf = append(t.buf, p[max(0, len(p)-t.limit):]...)
	t.buf = append(t.buf[:0], t.buf[max(0, len(t.buf)-t.limit):]...)
	return len(p), nil
}

// cleanOutput returns t as text without secrets. If t was truncated, it may begin with the end of a secret, so
// the beginning is left out.
func (e *Exec) cleanOutput(t tailBuffer) string {
	text := e.secrets.Clean(string(t.buf))
	if t.truncated {
		text = text[min(e.secrets.Longest(), len(text)):]
	}
	return text
}

// lastLine returns the last line of text that is not empty. The caller has removed the secrets, since
// one may have several lines.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
