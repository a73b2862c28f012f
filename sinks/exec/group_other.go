//go:build !unix

package exec

import (
	"os"
	"os/exec"
)

// alone does nothing: there are no process groups.
func alone(*exec.Cmd) {}

// mayBeKilled reports whether a process may have been killed, which this system does not report.
func mayBeKilled(*os.ProcessState) bool { return true }
