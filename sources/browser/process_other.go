//go:build !linux

package browser

import "os/exec"

// Elsewhere the browser ends with its first process, and its memory is not measured.
func ownGroup(*exec.Cmd) {}

func killGroup(int) {}

func memoryOf(int) int64 { return 0 }
