package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fullDisk is a writer that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

func runWithFullDisk(t *testing.T, args ...string) result {
	t.Helper()
	var err buffer
	a := &app{stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &err}
	code := a.run(t.Context(), args)
	return result{code: code, stderr: err.String()}
}

const unwritable = "vokter-stream: standard output cannot be written to: no space left on device\n"

func TestUnwritableOutput(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		r := runWithFullDisk(t, "demo", "--format", format)
		if r.code != 1 || !strings.HasSuffix(r.stderr, unwritable) {
			t.Errorf("demo %s: got %+v", format, r)
		}
	}
	p := newPage(t, "<p>one</p>", "<p>two</p>")
	args := []string{"watch", "--allow", loopback, "--every", "0s", "--log-level", "error", p.URL, "two"}
	if r := runWithFullDisk(t, args...); r.code != 1 || r.stderr != unwritable {
		t.Errorf("watch: got %+v", r)
	}
}

// TestUnwritableOutputKeeps checks that what could not be printed is printed by the
// next run.
func TestUnwritableOutputKeeps(t *testing.T) {
	t.Parallel()
	p := newPage(t, "<p>one</p>", "<p>two</p>")
	args := []string{"watch", "--allow", loopback, "--every", "0s", "--log-level", "error", "--data", filepath.Join(t.TempDir(), "d"), p.URL, "two"}
	if r := runWithFullDisk(t, args...); r.code != 1 || r.stderr != unwritable {
		t.Errorf("got %+v", r)
	}
	if r := runCLI(t, append(args, "--checks", "1", "--format", "json")...); r.code != 0 || len(notifications(t, r.stdout)) != 1 {
		t.Errorf("got %+v", r)
	}
}

// startWithPipe is a process of the program whose standard output is the write end of a pipe.
func startWithPipe(t *testing.T, args ...string) (cmd *exec.Cmd, out *os.File, stderr *bytes.Buffer) {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stderr = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = w, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it prints, thus it is at work
		t.Fatal(err)
	}
	return cmd, out, stderr
}

func TestClosedPipe(t *testing.T) {
	t.Parallel()
	cmd, out, stderr := startWithPipe(t, "demo", "--format", "json")
	out.Close()
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.HasSuffix(stderr.String(), "vokter-stream: standard output cannot be written to: broken pipe\n") {
		t.Errorf("got %v, stderr %s", err, stderr)
	}
}

func TestHangup(t *testing.T) {
	t.Parallel()
	cmd, _, stderr := startWithPipe(t, "demo", "--format", "json")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, stderr %s", err, stderr)
	}
}
