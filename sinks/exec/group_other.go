//go:build !unix

package exec

import "os/exec"

// alone does nothing: there are no process groups.
func alone(*exec.Cmd) {}
