package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vokter/vokter/internal/manage"
)

// daemon is a process of the program that runs a configuration with a listener.
type daemon struct {
	*exec.Cmd
	stderr bytes.Buffer
	addr   string
}

// daemonOf returns one that is not started.
func daemonOf(t *testing.T, args ...string) *daemon {
	d := &daemon{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	d.Env = append(os.Environ(), asProgram+"=1")
	d.Stderr = &d.stderr
	return d
}

// startDaemon returns once the process listens.
func startDaemon(t *testing.T, data string, args ...string) *daemon {
	t.Helper()
	d := daemonOf(t, args...)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	for t.Context().Err() == nil {
		b, err := os.ReadFile(filepath.Join(data, "listen"))
		if err != nil {
			continue
		}
		d.addr = strings.TrimSpace(string(b))
		c, err := manage.Find(data)
		if err != nil {
			continue // one that was killed left its address
		}
		_, err = c.Process(t.Context())
		c.Close()
		if err == nil {
			return d
		}
	}
	t.Fatal("it does not listen")
	return nil
}

func (d *daemon) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := d.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stopping returns once the process says that it is stopping.
func (d *daemon) stopping(t *testing.T) {
	t.Helper()
	for t.Context().Err() == nil {
		resp, err := http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return
		}
	}
}

// TestSecondSignal stops a process at once that waits for a receiver which never answers. The
// next one delivers.
func TestSecondSignal(t *testing.T) {
	s := newSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.page.set(http.StatusOK, "<p>Zeus. Out of stock.</p>")
	d := startDaemon(t, s.data, "run", "-c", s.config, "--allow", loopback, "--every", "0s")
	id := <-s.hook.ids // and there is no answer
	d.signal(t, syscall.SIGTERM)
	d.stopping(t)
	ended := make(chan error, 1)
	go func() { ended <- d.Wait() }()
	for len(ended) == 0 { // until one comes behind the moment at which the first was taken
		_ = d.Process.Signal(syscall.SIGTERM)
	}
	if err := <-ended; err == nil || !d.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("got %v, %s", err, &d.stderr)
	}
	expect(t, 0, "1 pending", "list", "--data", s.data)
	s.hook.answers <- http.StatusOK
	s.check(t, "<p>Zeus. Out of stock.</p>")
	if got := <-s.hook.ids; got != id || len(s.hook.ids) != 0 {
		t.Errorf("delivered %s, want %s; %d more", got, id, len(s.hook.ids))
	}
}

// TestHangupOfRun checks that it does not end the process, but makes it read its file.
func TestHangupOfRun(t *testing.T) {
	s := newSetup(t, "listen: 127.0.0.1:0\n")
	d := startDaemon(t, s.data, "run", "-c", s.config, "--allow", loopback)
	other := newPage(t, "<p>x</p>")
	b, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("%sdocuments: [{url: %q, keep: true}]\n", b, other.URL+"/more")
	if err := os.WriteFile(s.config, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	d.signal(t, syscall.SIGHUP)
	for other.count() == 0 && t.Context().Err() == nil {
		if d.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("it has ended")
		}
	}
	d.signal(t, syscall.SIGTERM)
	if err := d.Wait(); err != nil || !strings.Contains(d.stderr.String(), "documents changed") {
		t.Errorf("got %v, %s", err, &d.stderr)
	}
}
