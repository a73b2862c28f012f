package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "VOKTER_STREAM_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(nil))
	}
	os.Exit(m.Run())
}

// process runs the program with args in a process of its own.
func process(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// result is how a run of the program ended.
type result struct {
	code           int
	stdout, stderr string
}

// vs runs the program with args until it ends by itself.
func vs(t *testing.T, args ...string) result {
	t.Helper()
	var out, err buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &err}
	code := a.run(t.Context(), args)
	return result{code, out.String(), err.String()}
}

// started is a run of the program in the background.
type started struct {
	out, err buffer
	stop     context.CancelFunc
	ended    chan int
}

// start runs the program with args until its stop is called.
func start(t *testing.T, args ...string) *started {
	return startApp(t, &app{}, args...)
}

// startApp runs a with args until stop is called.
func startApp(t *testing.T, a *app, args ...string) *started {
	ctx, cancel := context.WithCancel(t.Context())
	s := &started{stop: cancel, ended: make(chan int, 1)}
	a.stdin, a.stdout, a.stderr = strings.NewReader(""), &s.out, &s.err
	go func() { s.ended <- a.run(ctx, args) }()
	t.Cleanup(cancel)
	return s
}

// listening returns the address that the program left in the data directory, where it is
// found once the pipeline is at work.
func (s *started) listening(t *testing.T, data string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if b, err := os.ReadFile(filepath.Join(data, "listen")); err == nil {
			return strings.TrimSpace(string(b))
		}
		select {
		case code := <-s.ended:
			s.ended <- code
			t.Fatalf("ended with %d before it left its address; stderr %s", code, &s.err)
		default:
		}
	}
	t.Fatal("the time is over")
	return ""
}

// buffer collects what is written; it is safe for concurrent use.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await returns once b contains want, or fails the test when the program ended first.
func (s *started) await(t *testing.T, b *buffer, want string) {
	t.Helper()
	for {
		b.mu.Lock()
		found := strings.Contains(b.b.String(), want)
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case code := <-s.ended:
			s.ended <- code
			t.Fatalf("ended with %d before %q was printed; stdout %s, stderr %s", code, want, &s.out, &s.err)
		}
	}
}

// page serves one page that the test changes; it counts the GETs.
type page struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string // served one after the other; the last one stays
	status int
	gets   int
}

func newPage(t *testing.T, bodies ...string) *page {
	p := &page{bodies: bodies, status: http.StatusOK}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gets++
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.status)
	fmt.Fprint(w, p.bodies[0])
	if len(p.bodies) > 1 {
		p.bodies = p.bodies[1:]
	}
}

func (p *page) set(status int, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.bodies = status, []string{body}
}

func (p *page) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gets
}

// notifications reads lines of JSON.
func notifications(t *testing.T, out string) []pipeline.Notification {
	t.Helper()
	var all []pipeline.Notification
	for line := range strings.Lines(out) {
		var n pipeline.Notification
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, n)
	}
	return all
}

// file writes a file of the test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
