//go:build unix

package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// TestGroupIsKilled: no process of the command is left when its time is over.
func TestGroupIsKilled(t *testing.T) {
	dir := t.TempDir()
	began, held := holdCommand(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-began; cancel() }()
	err := newInDir(t, dir).Deliver(ctx, pipeline.Notification{ID: "N"})
	if !errors.Is(err, context.Canceled) || !failure.IsAmbiguous(err) {
		t.Errorf("got %v, want context.Canceled, ambiguous", err)
	}
	<-held
}

// TestBackground: what a command leaves behind does not hold the delivery up.
func TestBackground(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	e, err := New(Config{Command: []string{"/bin/sh", "-c", `mkfifo "$1"; cat "$1" & exit 0`, "sh", fifo}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Deliver(t.Context(), pipeline.Notification{ID: "N"}); err != nil {
		t.Errorf("got %v, want delivered", err)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // it is still there, and ends with this
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestWhatTheCommandGets: its environment, its arguments as they are, and one line.
func TestWhatTheCommandGets(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	t.Setenv("TZ", "UTC")
	out := filepath.Join(t.TempDir(), "out")
	c := Config{
		Command: []string{"sh", "-c", `{ echo "$2"; cat; env; } > "$1"`, "sh", out, "a b; $(id) 'c'"},
		Env:     map[string]registry.Secret{"API_KEY": registry.NewSecret("k"), "HOME": registry.NewSecret("/nowhere")},
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Deliver(t.Context(), pipeline.Notification{ID: "N", URL: "https://example.com/\n"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if lines[0] != "a b; $(id) 'c'" || !strings.HasPrefix(lines[1], `{"status":"","url":"https://example.com/\n","diffs":[],"id":"N"`) {
		t.Errorf("got %q", lines[:2])
	}
	env := make(map[string]string)
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	for name, want := range map[string]string{"API_KEY": "k", "HOME": "/nowhere", "TZ": "UTC", "SECRET_OF_OURS": ""} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
}

func TestLargeNotificationIsNotRead(t *testing.T) {
	e, err := New(Config{Command: []string{"/bin/sh", "-c", "exit 0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Deliver(t.Context(), pipeline.Notification{ID: "N", Title: strings.Repeat("x", 1<<20)}); err != nil {
		t.Errorf("got %v, want delivered", err)
	}
}

// TestHalfASecret: where no more than the end of a secret was kept of what a command says, that
// is not told either.
func TestHalfASecret(t *testing.T) {
	for _, secret := range []string{"A-SECRET-OF-SOME-LENGTH", "A-SECRET-OF\nSOME-LENGTH", strings.Repeat("A-SECRET-OF-SOME-LENGTH", 200)} {
		said := func(behind int) *Exec {
			e, err := New(Config{
				Command: []string{"/bin/sh", "-c", fmt.Sprintf(`{ printf %%s "$KEY"; head -c %d /dev/zero | tr '\0' x; } >&2; exit 1`, behind)},
				Env:     map[string]registry.Secret{"KEY": registry.NewSecret(secret)},
			})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		e := said(maxStderr + said(0).secrets.Longest() - 10)
		err := e.Deliver(t.Context(), pipeline.Notification{ID: "N"})
		if err == nil || strings.Contains(err.Error(), "LENGTH") || !strings.Contains(err.Error(), ": xxxx") {
			t.Errorf("%q: got %v", secret, err)
		}
	}
}

func TestProgramThatIsGone(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Command: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	err = e.Deliver(t.Context(), pipeline.Notification{ID: "N"})
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want to try again", err)
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "file", "")
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{}, "command: a program is required"},
		{Config{Command: []string{""}}, "command: a program is required"},
		{Config{Command: []string{"./notify"}}, `command: "./notify" is a relative path`},
		{Config{Command: []string{"/no/such/program"}}, `command: "/no/such/program": `},
		{Config{Command: []string{"no-such-program"}}, `command: "no-such-program": executable file not found`},
		{Config{Command: []string{filepath.Join(dir, "file")}}, "permission denied"},
		{Config{Command: []string{"/bin/sh", "a\x00b"}}, "command[1]: "},
		{Config{Command: []string{"/bin/sh"}, Env: map[string]registry.Secret{"A-B": {}}}, `env: "A-B"`},
		{Config{Command: []string{"/bin/sh"}, Env: map[string]registry.Secret{"A": registry.NewSecret("hunter22\x00")}}, "env: the value of A must not contain a NUL"},
	} {
		_, err := New(tt.c)
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: got %v, want %s", tt.c.Command, err, tt.want)
		}
	}
}
