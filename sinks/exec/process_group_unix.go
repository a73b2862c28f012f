//go:build unix

package exec

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup gives cmd a process group of its own, which is killed in place of cmd alone.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// mayHaveBeenKilled reports whether a process may have been killed: it did not end by itself.
func mayHaveBeenKilled(s *os.ProcessState) bool { return !s.Exited() }
