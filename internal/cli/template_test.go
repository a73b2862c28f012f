package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A template is tried in a process of its own, whose end says nothing about it.
func TestTryTemplate(t *testing.T) {
	t.Setenv(asProgram, "1")
	a := &app{executable: os.Args[0]}
	if err := a.tryTemplate("{{.title}}"); err != nil {
		t.Errorf("got %v for a good template", err)
	}
	const bad = `fails for an ordinary notification: line 1: at <.titel>: map has no entry for key "titel"`
	if err := a.tryTemplate("{{.titel}}"); err == nil || err.Error() != bad {
		t.Errorf("got %v, want %s", err, bad)
	}
	a.executable = filepath.Join(t.TempDir(), "gone")
	if err := a.tryTemplate("{{.titel}}"); err == nil || err.Error() != bad {
		t.Errorf("without the program: got %v, want %s", err, bad)
	}
	if err := os.WriteFile(a.executable, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.tryTemplate("{{.title}}"); err == nil || !strings.Contains(err.Error(), "ended the process") {
		t.Errorf("got %v of a process that breaks", err)
	}
}
