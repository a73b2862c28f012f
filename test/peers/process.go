package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// poll is how often it is looked at what the site has answered.
const poll = 20 * time.Millisecond

// command returns a command that gets SIGTERM when ctx is done.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// process is a program that was started.
type process struct {
	*exec.Cmd
	log   bytes.Buffer
	ended chan struct{} // closed when it has ended, with err
	err   error
}

func start(cmd *exec.Cmd) (*process, error) {
	p := &process{Cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// end ends p with SIGTERM, or with SIGKILL where that does not help.
func (p *process) end() {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		<-p.ended
	}
}

// wait waits for d, and fails if p ends before that.
func (p *process) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-p.ended:
		return fmt.Errorf("it ended too early: %w\n%s", cmp.Or(p.err, errors.New("without an error")), tail(p.log.String()))
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// steady starts cmd, which checks all pages again and again, waits until it has checked each twice, and
// returns what it uses in the window that follows. Then it ends the process.
func steady(ctx context.Context, m measurement, cmd *exec.Cmd) (c cost, err error) {
	p, err := start(cmd)
	if err != nil {
		return c, err
	}
	defer p.end()
	for m.site.settled.Load() < int64(m.pages) {
		if err := p.wait(ctx, poll); err != nil {
			return c, err
		}
	}
	before, err := used(cmd.Process.Pid)
	if err != nil {
		return c, err
	}
	answers, began := m.site.answers.Load(), time.Now()
	if err := p.wait(ctx, m.window); err != nil {
		return c, err
	}
	after, err := used(cmd.Process.Pid)
	if err != nil {
		return c, err
	}
	return cost{m.site.answers.Load() - answers, time.Since(began), after.cpu - before.cpu, after.written - before.written}, nil
}

// tail returns the last lines of a log.
func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// tick is the unit of the times in /proc/PID/stat, USER_HZ.
const tick = 10 * time.Millisecond

// used returns what a process and the children that it waited for have used since their start.
func used(pid int) (c cost, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return c, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // behind the name, which may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return c, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return c, err
		}
		c.cpu += time.Duration(n) * tick
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(io)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			c.written, err = strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return c, err
}
