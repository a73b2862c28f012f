//go:build !unix

package exec

import (
	"os"
	"os/exec"
)

// setProcessGroup does nothing: there are no process groups.
func setProcessGroup(*exec.Cmd) {}

// mayHaveBeenKilled reports whether a process may have been killed, which this system does not report.
func mayHaveBeenKilled(*os.ProcessState) bool { return true }
