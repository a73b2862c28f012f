package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "VOKTER_STREAM_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(nil))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // more than there are processors: tests mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

// runProcess runs the program with args in a process of its own.
func runProcess(t *testing.T, args ...string) result {
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

// runCLI runs the program with args until it ends by itself.
func runCLI(t *testing.T, args ...string) result {
	t.Helper()
	var out, err buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &err, alter: speedUpChecks}
	code := a.run(t.Context(), args)
	return result{code, out.String(), err.String()}
}

// speedUpChecks lets a host be asked without a pause. It is asked once a second otherwise, and all pages of the tests
// are on one host.
func speedUpChecks(c *vokter.Config) {
	if c.Fetch.Rate == 0 {
		c.Fetch.Rate = 1000
	}
}

// startedApp is a run of the program in the background.
type startedApp struct {
	out, err buffer
	stop     context.CancelFunc
	ended    chan int
}

// start runs the program with args until its stop is called.
func start(t *testing.T, args ...string) *startedApp {
	return startApp(t, &app{}, args...)
}

// startApp runs a with args until stop is called.
func startApp(t *testing.T, a *app, args ...string) *startedApp {
	ctx, cancel := context.WithCancel(t.Context())
	s := &startedApp{stop: cancel, ended: make(chan int, 1)}
	a.stdin, a.stdout, a.stderr, a.alter = strings.NewReader(""), &s.out, &s.err, speedUpChecks
	go func() { s.ended <- a.run(ctx, args) }()
	t.Cleanup(cancel)
	return s
}

// awaitAddress returns the address that the program left in the data directory, where it is
// found once the pipeline is at work.
func (s *startedApp) awaitAddress(t *testing.T, data string) string {
	t.Helper()
	address := ""
	waitFor(t, "the address in "+data, func() bool {
		if b, err := os.ReadFile(filepath.Join(data, "listen")); err == nil {
			address = strings.TrimSpace(string(b))
			return true
		}
		select {
		case code := <-s.ended:
			s.ended <- code
			t.Fatalf("ended with %d before it left its address; stderr %s", code, &s.err)
		default:
		}
		return false
	})
	return address
}

// waitFor waits until done returns true, which other goroutines or processes bring about. It fails
// the test after a minute, or shortly before the deadline of the test run.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	if deadline, ok := t.Deadline(); ok && deadline.Add(-10*time.Second).Before(end) {
		end = deadline.Add(-10 * time.Second)
	}
	for !done() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
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
func (s *startedApp) await(t *testing.T, b *buffer, want string) {
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

// changingPage serves one page that the test changes; it counts the GETs.
type changingPage struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string // served one after the other; the last one stays
	status int
	gets   int
}

func newPage(t *testing.T, bodies ...string) *changingPage {
	p := &changingPage{bodies: bodies, status: http.StatusOK}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *changingPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
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

func (p *changingPage) set(status int, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.bodies = status, []string{body}
}

func (p *changingPage) count() int {
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

// webhookReceiver is a receiver that answers what the test says, and keeps the IDs of what it got.
type webhookReceiver struct {
	*httptest.Server
	answers chan int // one for each request
	ids     chan string
}

func newWebhookReceiver(t *testing.T) *webhookReceiver {
	h := &webhookReceiver{answers: make(chan int, 100), ids: make(chan string, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.ids <- r.Header.Get("webhook-id")
		select {
		case status := <-h.answers:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// testSetup is a page, a receiver and the configuration for both.
type testSetup struct {
	page         *changingPage
	hook         *webhookReceiver
	config, data string
}

func newTestSetup(t *testing.T, more string) *testSetup {
	t.Helper()
	s := &testSetup{page: newPage(t, "<p>Zeus. In stock.</p>"), hook: newWebhookReceiver(t), data: filepath.Join(t.TempDir(), "d")}
	s.config = file(t, "c.yaml", fmt.Sprintf(`
data: %s
fetch: {per_host: {rate: 1000/s}}
delivery: {retry: [1h]}
sinks: {hook: {webhook: {url: %q}}, out: {stdout: {}}}
subscriptions:
  - {url: %q, client: legal, keywords: [out of stock, privacy], sinks: [hook]}
%s`, s.data, s.hook.URL, s.page.URL, more))
	return s
}

// check makes one check of all pages.
func (s *testSetup) check(t *testing.T, body string) {
	t.Helper()
	s.page.set(http.StatusOK, body)
	if r := runCLI(t, "run", "-c", s.config, "--allow", loopback, "--checks", "1", "--every", "0s", "--log-level", "error"); r.code != 0 && !strings.Contains(r.stderr, "notification") {
		t.Fatalf("got %+v", r)
	}
}

// objects reads lines of JSON by their kind.
func objects(t *testing.T, r result) map[string][]map[string]any {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	all := make(map[string][]map[string]any)
	for line := range strings.Lines(r.stdout) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		kind, _ := o["kind"].(string)
		all[kind] = append(all[kind], o)
	}
	return all
}

// expectExit runs a verb and holds its exit code and output to what is wanted.
func expectExit(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	r := runCLI(t, args...)
	if r.code != code || !strings.Contains(r.stdout+r.stderr, want) {
		t.Errorf("%v: got %d, stdout %s, stderr %s, want %d and %q", args, r.code, r.stdout, r.stderr, code, want)
	}
}

// daemonProcess is a process of the program that runs a configuration with a listener.
type daemonProcess struct {
	*exec.Cmd
	stderr bytes.Buffer
	addr   string
}

// daemonOf returns one that is not started.
func daemonOf(t *testing.T, args ...string) *daemonProcess {
	d := &daemonProcess{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	d.Env = append(os.Environ(), asProgram+"=1")
	d.Stderr = &d.stderr
	return d
}

// startDaemon returns once the process listens.
func startDaemon(t *testing.T, data string, args ...string) *daemonProcess {
	t.Helper()
	d := daemonOf(t, args...)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a process that answers for "+data, func() bool {
		b, err := os.ReadFile(filepath.Join(data, "listen"))
		if err != nil {
			return false
		}
		d.addr = strings.TrimSpace(string(b))
		c, err := manage.Find(data)
		if err != nil {
			return false // a process that was killed left its address
		}
		_, err = c.Process(t.Context())
		c.Close()
		return err == nil
	})
	return d
}

func (d *daemonProcess) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := d.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// awaitStopping returns once the process says that it is stopping.
func (d *daemonProcess) awaitStopping(t *testing.T) {
	t.Helper()
	waitFor(t, "/readyz to answer 503", func() bool {
		resp, err := http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
}
