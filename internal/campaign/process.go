package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// build builds the binary that is put to the test.
func build(ctx context.Context, out, tags string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", out, "./cmd/vokter-stream")
	cmd.Dir = strings.TrimSpace(string(root))
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, b)
	}
	return nil
}

// process is the binary over one data directory, through several lives.
type process struct {
	binary, config, data string
	verbose              bool
}

func (p process) start() (*exec.Cmd, *bytes.Buffer, error) {
	cmd := exec.Command(p.binary, "run", "-c", p.config, "--data", p.data, "--every", "20ms")
	var log bytes.Buffer
	cmd.Stderr = &log
	if p.verbose {
		cmd.Stderr = os.Stderr
	}
	return cmd, &log, cmd.Start()
}

// killAfter lets the process live that long and ends it with SIGKILL. A process that
// ends by itself is an error.
func (p process) killAfter(ctx context.Context, lifetime time.Duration) error {
	cmd, log, err := p.start()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-time.After(lifetime):
	case <-ctx.Done():
	case err := <-ended:
		return fmt.Errorf("the process ended by itself: %w\n%s", err, log)
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-ended; err == nil {
		return errors.New("the process ended well although it was killed")
	}
	return nil
}

// runUntil lets the process live until done, at most for limit, and ends it in order
// with SIGTERM. Not being done within limit is no error: the judgement will tell.
func (p process) runUntil(ctx context.Context, done func() bool, limit time.Duration) error {
	cmd, log, err := p.start()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			waiting = !done()
		case <-deadline:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case err := <-ended:
			return fmt.Errorf("the process ended by itself: %w\n%s", err, log)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("the process did not end well: %w\n%s", err, log)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the process did not end within a minute of SIGTERM"), cmd.Process.Kill())
	}
}
