//go:build unix

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

// buildStream builds the program that is put to the test: the binary, with a clock that can be set and
// a transport that can be broken.
func buildStream(ctx context.Context, out string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./test/campaign/stream")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, whatever builds the test
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, b)
	}
	return nil
}

// process is the binary over one data directory, across restarts.
type process struct {
	binary, config, data, clock string
	verbose                     bool
	interval                    time.Duration
	// log gets what it writes to its standard error besides; nil: nobody does.
	log io.Writer
}

// command returns the binary with its verb and flags.
func (p process) command(args ...string) (*exec.Cmd, *outputTail) {
	cmd := exec.Command(p.binary, args...)
	cmd.Env = append(os.Environ(), clockVariable+"="+p.clock)
	log := &outputTail{}
	cmd.Stderr = log
	switch {
	case p.verbose:
		cmd.Stderr = io.MultiWriter(log, os.Stderr)
	case p.log != nil:
		cmd.Stderr = io.MultiWriter(log, p.log)
	}
	return cmd, log
}

// outputTail keeps the end of what a process wrote.
type outputTail struct {
	mu sync.Mutex
	b  []byte
}

// maxOutput is how much of an output is kept, in bytes.
const maxOutput = 64 << 10

func (o *outputTail) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b = append(o.b, b...)
	if n := len(o.b) - maxOutput; n > maxOutput {
		o.b = append([]byte(nil), o.b[n:]...)
	}
	return len(b), nil
}

func (o *outputTail) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b)
}

// processRun is one run of the process.
type processRun struct {
	cmd                *exec.Cmd
	log                *outputTail
	ended              chan struct{} // closed when it has ended, with err
	err                error
	startedAt, endedAt time.Time
}

// start begins a run.
func (p process) start() (*processRun, error) {
	cmd, log := p.command("run", "-c", p.config, "--data", p.data, "--every", p.interval.String())
	l := &processRun{cmd: cmd, log: log, ended: make(chan struct{}), startedAt: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		l.err = cmd.Wait()
		l.endedAt = time.Now()
		close(l.ended)
	}()
	return l, nil
}

// hasEnded reports whether the run has ended.
func (l *processRun) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// kill ends the run with SIGKILL. One that ended by itself is an error.
func (l *processRun) kill() error {
	if l.hasEnded() {
		return l.unexpectedExit()
	}
	if err := l.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-l.ended
	if s, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() {
		return l.unexpectedExit()
	}
	return nil
}

// unexpectedExit returns the error of a process that ended by itself.
func (l *processRun) unexpectedExit() error {
	return fmt.Errorf("the process ended by itself: %s\n%s", l.cmd.ProcessState, l.log)
}

// stop ends the run in order.
func (l *processRun) stop() error {
	if l.hasEnded() {
		return l.unexpectedExit()
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

// verbResult is the result of a verb.
type verbResult struct {
	code   int // its exit code, -1 where it was killed
	killed bool
	out    []byte
	log    string
}

// verbTimeout is how long a verb may take.
const verbTimeout = 30 * time.Second

// runVerb runs a verb to its end, or kills it after some time where that is positive.
func (p process) runVerb(kill time.Duration, args ...string) (verbResult, error) {
	cmd, log := p.command(args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return verbResult{}, err
	}
	limit := verbTimeout
	if kill > 0 {
		limit = kill
	}
	t := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() }) // or it has just ended
	err := cmd.Wait()
	t.Stop()
	a := verbResult{code: cmd.ProcessState.ExitCode(), out: out.Bytes(), log: log.String()}
	a.killed = a.code < 0
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		return a, err
	}
	if a.killed && kill <= 0 {
		return a, fmt.Errorf("%s did not end within %v\n%s", args[0], verbTimeout, log)
	}
	return a, nil
}
