//go:build unix

package exec

import (
	"os"
	"os/exec"
	"syscall"
)

// alone gives cmd a process group of its own, which is killed in place of cmd alone.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// mayBeKilled reports whether a process may have been killed: it did not end by itself.
func mayBeKilled(s *os.ProcessState) bool { return !s.Exited() }
