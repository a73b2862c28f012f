package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// sabotageVariable makes the program of test/campaign/stream break its transactions.
const sabotageVariable = "VOKTER_SABOTAGE"

// build builds the program that is put to the test: the binary, with a clock that can be set and
// a transport that can be broken.
func build(ctx context.Context, out string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./test/campaign/stream")
	cmd.Dir = strings.TrimSpace(string(root))
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, b)
	}
	return nil
}

// process is the binary over one data directory, across restarts.
type process struct {
	binary, config, data, clock string
	verbose                     bool
	every                       time.Duration
	// log gets what it writes to its standard error besides; nil: nobody does.
	log io.Writer
}

// command returns the binary with its verb and flags.
func (p process) command(args ...string) (*exec.Cmd, *output) {
	cmd := exec.Command(p.binary, args...)
	cmd.Env = append(os.Environ(), clockVariable+"="+p.clock)
	log := &output{}
	cmd.Stderr = log
	switch {
	case p.verbose:
		cmd.Stderr = io.MultiWriter(log, os.Stderr)
	case p.log != nil:
		cmd.Stderr = io.MultiWriter(log, p.log)
	}
	return cmd, log
}

// output is what a process wrote, of which the end is kept.
type output struct {
	mu sync.Mutex
	b  []byte
}

// kept is how much of an output is kept, in bytes.
const kept = 64 << 10

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b = append(o.b, b...)
	if n := len(o.b) - kept; n > kept {
		o.b = append([]byte(nil), o.b[n:]...)
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b)
}

// life is one run of the process.
type life struct {
	cmd        *exec.Cmd
	log        *output
	ended      chan struct{} // closed when it has ended, with err
	err        error
	from, till time.Time
}

// start begins a life.
func (p process) start() (*life, error) {
	cmd, log := p.command("run", "-c", p.config, "--data", p.data, "--every", p.every.String())
	l := &life{cmd: cmd, log: log, ended: make(chan struct{}), from: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		l.err = cmd.Wait()
		l.till = time.Now()
		close(l.ended)
	}()
	return l, nil
}

// over reports whether the life has ended.
func (l *life) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// kill ends the life with SIGKILL. One that ended by itself is an error.
func (l *life) kill() error {
	if l.over() {
		return l.own()
	}
	if err := l.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-l.ended
	if s, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() {
		return l.own()
	}
	return nil
}

// own is the error of a process that ended by itself.
func (l *life) own() error {
	return fmt.Errorf("the process ended by itself: %s\n%s", l.cmd.ProcessState, l.log)
}

// end ends the life in order.
func (l *life) end() error {
	if l.over() {
		return l.own()
	}
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-l.ended:
		if l.err != nil {
			return fmt.Errorf("the process did not end well: %w\n%s", l.err, l.log)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the process did not end within a minute of SIGTERM"), l.cmd.Process.Kill())
	}
}

// answer is what came of a verb.
type answer struct {
	code   int // its exit code, -1 where it was killed
	killed bool
	out    []byte
	log    string
}

// verbLimit is how long a verb may take.
const verbLimit = 30 * time.Second

// verb runs a verb to its end, or kills it after some time where that is positive.
func (p process) verb(kill time.Duration, args ...string) (answer, error) {
	cmd, log := p.command(args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return answer{}, err
	}
	limit := verbLimit
	if kill > 0 {
		limit = kill
	}
	t := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() }) // or it has just ended
	err := cmd.Wait()
	t.Stop()
	a := answer{code: cmd.ProcessState.ExitCode(), out: out.Bytes(), log: log.String()}
	a.killed = a.code < 0
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		return a, err
	}
	if a.killed && kill <= 0 {
		return a, fmt.Errorf("%s did not end within %v\n%s", args[0], verbLimit, log)
	}
	return a, nil
}
