//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// member is one of the processes that share the pages, across restarts.
type member struct {
	process process
	log     *os.File
	run     *processRun // nil while it is not there
	frozen  bool        // by SIGSTOP
	backAt  time.Time   // when it comes back, or goes on
}

// newMember returns one that keeps all it has in dir.
func newMember(f *fleet, dir string) (*member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	m := &member{log: log, process: f.process}
	m.process.data, m.process.log = filepath.Join(dir, "data"), log
	return m, nil
}

// isUp reports whether m runs and is not frozen.
func (m *member) isUp() bool { return m.run != nil && !m.frozen }

func (m *member) start() error {
	l, err := m.process.start()
	if err == nil {
		m.run = l
	}
	return err
}

// kill ends m at once, also while it is frozen. With wipe its data directory is lost, too.
func (m *member) kill(wipe bool) error {
	err := m.run.kill()
	m.run, m.frozen = nil, false
	if err == nil && wipe {
		err = os.RemoveAll(m.process.data)
	}
	return err
}

// stop ends m in order.
func (m *member) stop() error {
	l := m.run
	err := l.stop()
	m.run = nil
	if l.hasEnded() {
		if s, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
			return nil // it had hardly begun, and did not listen to signals yet
		}
	}
	return err
}

// setFrozen freezes m, which does not notice, or lets it go on.
func (m *member) setFrozen(is bool) error {
	signal := syscall.SIGCONT
	if is {
		signal = syscall.SIGSTOP
	}
	m.frozen = is
	if err := m.run.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%w: %w", m.run.unexpectedExit(), err)
	}
	return nil
}

// ready returns nil where m says that it works, and otherwise what it says.
func (m *member) ready(ctx context.Context) error {
	s, err := os.Stat(filepath.Join(m.process.data, "listen"))
	if err != nil || s.ModTime().Before(m.run.startedAt) {
		return errors.New("it does not listen yet")
	}
	addr, err := os.ReadFile(filepath.Join(m.process.data, "listen"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(string(addr))+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
