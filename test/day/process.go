package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// buildStream builds the binary whose clock can be set.
func buildStream(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "vokter-stream")
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./test/campaign/stream")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, whatever builds the test
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w\n%s", err, b)
	}
	return out, nil
}

// process is the running binary.
type process struct {
	cmd   *exec.Cmd
	data  string
	log   *logTail
	ended chan struct{} // closed when it has ended, with err
	err   error
}

// startProcess starts the binary with all pages in its configuration.
func startProcess(ctx context.Context, o options, dir string, w *pageServer, b *inbox) (*process, error) {
	var s strings.Builder
	s.WriteString("listen: 127.0.0.1:0\nallow: {fetch: [127.0.0.1/32], sinks: [127.0.0.1/32]}\n")
	// A request takes machine time: one that hangs for a second hangs for minutes of the simulated
	// time. So the limits are short. Those of a fetch and of its delays, about two minutes of simulated
	// time, must not be passed, since the process would take it for lost and ask again.
	fmt.Fprintf(&s, "fetch: {timeout: 500ms, per_host: {concurrency: %d, rate: 1000/s}}\n", max(2, 16*o.rate/144))
	fmt.Fprintf(&s, "health: [%s]\nsinks:\n  %s: {webhook: {url: %q}}\n", owner, owner, b.url(owner))
	for n := range o.receivers {
		fmt.Fprintf(&s, "  hook%d: {webhook: {url: %q}, timeout: 1s}\n", n, b.url(fmt.Sprint(n)))
	}
	s.WriteString("subscriptions:\n")
	for n := range o.pages {
		fmt.Fprintf(&s, "  - {url: %q, keywords: [marker], interval: %v, sinks: [hook%s]}\n", w.url(n), interval, b.receiverOf(n))
	}
	config := filepath.Join(dir, "day.yaml")
	if err := os.WriteFile(config, []byte(s.String()), 0o600); err != nil {
		return nil, err
	}
	p := &process{data: filepath.Join(dir, "data"), log: &logTail{onFailedCheck: w.recordFailedCheck}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, o.binary, "run", "-c", config, "--data", p.data)
	p.cmd.Env = append(os.Environ(), "VOKTER_CLOCK_FILE="+w.clock.file)
	p.cmd.Stderr = p.log
	if o.verbose {
		p.cmd.Stderr = io.MultiWriter(p.log, os.Stderr)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	address := func() bool { _, err := p.address(); return err == nil }
	if err := p.waitFor(ctx, o.first, "the listener", address); err != nil { // it is announced when all subscriptions are sent
		p.kill()
		return nil, fmt.Errorf("%w\n%s", err, p.log)
	}
	return p, nil
}

func (p *process) address() (string, error) {
	b, err := os.ReadFile(filepath.Join(p.data, "listen"))
	return strings.TrimSpace(string(b)), err
}

// pause waits for d. A process that ends is an error.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ended:
		return fmt.Errorf("the process ended by itself: %s", p.cmd.ProcessState)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errTimeout says that something awaited did not happen in time.
var errTimeout = errors.New("not in time")

// waitFor waits until done returns true, for limit at most.
func (p *process) waitFor(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	for end := time.Now().Add(limit); !done(); {
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w (%v)", what, errTimeout, limit)
		}
		if err := p.pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // or it has ended
	<-p.ended
}

// stop ends the process in order.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.kill()
		return errors.New("the process did not end within a minute of SIGTERM")
	}
	if p.err != nil {
		return fmt.Errorf("the process did not end well: %w\n%s", p.err, p.log)
	}
	return nil
}

// sample is what the process says about itself at a time.
type sample struct {
	at                      time.Duration // since the day began
	heap, resident, store   float64       // bytes
	overdue                 float64       // pages, by vokter_overdue_pages
	checks, failed, changes float64
	dead, unhandled         float64
	cpu                     float64 // seconds
}

// sample reads the metrics of the process.
func (p *process) sample(ctx context.Context) (sample, error) {
	address, err := p.address()
	if err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return sample{}, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return sample{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return sample{}, fmt.Errorf("/metrics answers %s", resp.Status)
	}
	return parseMetrics(resp.Body)
}

// parseMetrics reads metrics in the text format of Prometheus. The values of a metric with labels are added.
func parseMetrics(r io.Reader) (sample, error) {
	var s sample
	into := map[string]*float64{
		"go_memstats_heap_inuse_bytes": &s.heap, "process_resident_memory_bytes": &s.resident, "vokter_store_bytes": &s.store,
		"vokter_overdue_pages": &s.overdue, "vokter_checks_total": &s.checks, "vokter_checks_failed_total": &s.failed,
		"vokter_changes_total": &s.changes, "vokter_unhandled_messages_total": &s.unhandled, "process_cpu_seconds_total": &s.cpu,
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		bare, labels, _ := strings.Cut(name, "{")
		to := into[bare]
		if bare == "vokter_deliveries_total" && strings.Contains(labels, `outcome="dead_letter"`) {
			to = &s.dead
		}
		if to == nil {
			continue
		}
		v, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64)
		if err != nil {
			return s, fmt.Errorf("/metrics: %s: %w", name, err)
		}
		*to += v
	}
	return s, lines.Err()
}

// logTail keeps the last lines that the process wrote, and calls onFailedCheck for each page of which they say that
// a check failed.
type logTail struct {
	onFailedCheck func(url string)
	kept          bytes.Buffer
	partialLine   []byte // the part of a line that was written
}

// maxKept is how much a tail keeps, in bytes.
const maxKept = 16 << 10

var failedCheckPattern = regexp.MustCompile(`msg="check failed" page=(\S+)`)

func (t *logTail) Write(b []byte) (int, error) {
	t.kept.Write(b)
	if n := t.kept.Len() - maxKept; n > 0 {
		t.kept.Next(n)
	}
	t.partialLine = append(t.partialLine, b...)
	for {
		line, rest, ended := bytes.Cut(t.partialLine, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		if f := failedCheckPattern.FindSubmatch(line); f != nil {
			t.onFailedCheck(string(f[1]))
		}
		t.partialLine = rest
	}
}

func (t *logTail) String() string { return t.kept.String() }
