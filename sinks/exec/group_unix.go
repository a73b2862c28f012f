//go:build unix

package exec

import (
	"os/exec"
	"syscall"
)

// alone gives cmd a process group of its own, which is killed in place of cmd alone.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
