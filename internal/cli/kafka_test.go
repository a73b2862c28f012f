package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline/kafka"
)

// startCluster starts a cluster in this process and returns its broker.
func startCluster(t *testing.T) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// newSharedSetup is a setup whose transport is the cluster of broker.
func newSharedSetup(t *testing.T, broker, more string) *testSetup {
	t.Helper()
	return newTestSetup(t, fmt.Sprintf("transport: {kafka: {brokers: [%q], partitions: 3}}\nlisten: 127.0.0.1:0\n%s", broker, more))
}

var listens = regexp.MustCompile(`msg=listening address=(\S+)`)

// TestKafkaWaits: while no broker answers, a process says so and why, and ends when it is told to.
func TestKafkaWaits(t *testing.T) {
	gone := newPage(t, "")
	gone.Close()
	broker := strings.TrimPrefix(gone.URL, "http://")
	s := newSharedSetup(t, broker, "")
	d := startWaiting(t, "run", "-c", s.config)
	waitFor(t, "/readyz to say that no broker answers", func() bool {
		resp, err := http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		why := string(b)
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(why, "starting: ") {
			t.Fatalf("/readyz: got %s %s, %v", resp.Status, why, err)
		}
		return strings.Contains(why, "no broker answers at "+broker)
	})
	if names := scrape(t, d.addr); !slices.Contains(names, "vokter_ready") {
		t.Errorf("/metrics: got %q", names)
	}
	d.signal(t, syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, %s", err, &d.stderr)
	}
}

// startWaiting starts the program in a process of its own and returns once it listens, which
// is before it works.
func startWaiting(t *testing.T, args ...string) *daemonProcess {
	t.Helper()
	d := daemonOf(t, args...)
	r, w := io.Pipe()
	d.Stderr = io.MultiWriter(&d.stderr, w)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	var seen []byte
	for b := make([]byte, 4096); ; {
		n, err := r.Read(b)
		seen = append(seen, b[:n]...)
		if m := listens.FindSubmatch(seen); m != nil {
			d.addr = string(m[1])
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return d
		}
		if err != nil {
			t.Fatalf("%v, %s", err, seen)
		}
	}
}

// ready returns the address that the program left in the data directory once it is ready.
func (s *startedApp) ready(t *testing.T, data string) string {
	t.Helper()
	addr := s.awaitAddress(t, data)
	waitFor(t, "/readyz to answer 200", func() bool {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			t.Fatalf("%v, %s", err, &s.err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return addr
}

func TestKafkaRuns(t *testing.T) {
	t.Parallel()
	s := newSharedSetup(t, startCluster(t), "")
	s.hook.answers <- http.StatusOK
	s.check(t, "<p>Zeus. In stock.</p>")
	s.check(t, "<p>Zeus. Out of stock.</p>")
	if len(s.hook.ids) != 1 {
		t.Fatalf("%d deliveries, want 1", len(s.hook.ids))
	}
	if entries, err := os.ReadDir(s.data); err != nil || len(entries) != 3 || entries[0].Name() != "kafka" {
		t.Errorf("the data directory: got %v, %v, want kafka and the logins", entries, err)
	}
	for _, args := range [][]string{
		{"list"}, {"explain", s.page.URL}, {"cancel", s.page.URL, "--client", "legal"}, {"resume", s.page.URL},
		{"backup", filepath.Join(t.TempDir(), "b")}, {"replay", "-c", s.config}, {"replay", "-c", s.config, "--dry-run"},
	} {
		expectExit(t, 1, s.data+" is a cache of state that is kept in Kafka", append(args, "--data", s.data)...)
	}

	run := start(t, "run", "-c", s.config, "--allow", loopback)
	addr := run.ready(t, s.data)
	waitFor(t, "the end of the start", func() bool { return slices.Contains(scrape(t, addr), "vokter_start_seconds") })
	if got, want := scrape(t, addr), documentedMetrics(t, true); !slices.Equal(got, want) {
		t.Errorf("got %q, want the metrics of docs/metrics.md: %q", got, want)
	}
	found := objects(t, runCLI(t, "list", "--data", s.data, "--format", "json"))
	if len(found["page"]) != 1 || len(found["subscription"]) != 1 || len(found["receiver"]) == 0 {
		t.Errorf("list: got %v", found)
	}
	expectExit(t, 0, "delivered at", "explain", s.page.URL, "--data", s.data)
	expectExit(t, 0, "no dead letters", "replay", "-c", s.config)
	expectExit(t, 1, "no store here to copy", "backup", filepath.Join(t.TempDir(), "b"), "--data", s.data)
	if r := runProcess(t, "run", "-c", s.config, "--allow", loopback); r.code != 1 || !strings.Contains(r.stderr, s.data+"/kafka is in use by another process") {
		t.Errorf("a second process: got %+v", r)
	}
	expectExit(t, 0, "does not watch", "cancel", s.page.URL, "--data", s.data, "--client", "legal")
	run.stop()
	if code := <-run.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &run.err)
	}
}

// TestKafkaShared: of two processes each knows its own lanes, and says so.
func TestKafkaShared(t *testing.T) {
	t.Parallel()
	a := newSharedSetup(t, startCluster(t), "")
	b := *a
	b.data = filepath.Join(t.TempDir(), "d")
	first := start(t, "run", "-c", a.config, "--allow", loopback)
	first.ready(t, a.data)
	second := start(t, "run", "-c", b.config, "--allow", loopback, "--data", b.data)
	second.ready(t, b.data)
	// Lanes move for a moment after the second came.
	waitFor(t, "both processes to own lanes, and one of them the page", func() bool {
		shared, know := 0, 0
		for _, s := range []*testSetup{a, &b} {
			r := runCLI(t, "list", "--data", s.data)
			if strings.Contains(r.stderr, " of 3 lanes; other processes have the rest") && !strings.Contains(r.stderr, " 0 of 3 lanes") {
				shared++
			}
			switch r := runCLI(t, "explain", a.page.URL, "--data", s.data); {
			case r.code == 0:
				know++
			case !strings.Contains(r.stderr, "another process owns it") && !strings.Contains(r.stderr, "is not watched"):
				t.Fatalf("explain: got %+v", r)
			}
		}
		return shared == 2 && know == 1
	})
	waitFor(t, "the owner of the page to know its history, and the other process to name the reason", func() bool {
		know, elsewhere := 0, 0
		for _, s := range []*testSetup{a, &b} {
			switch r := runCLI(t, "history", a.page.URL, "--data", s.data); {
			case strings.Contains(r.stdout, "version 1") && strings.Contains(r.stdout, "baseline"):
				know++
			case r.code == 1 && strings.Contains(r.stderr, "another process owns it"):
				elsewhere++
			}
		}
		return know == 1 && elsewhere == 1
	})
	// Either is asked to cancel; the owner does.
	expectExit(t, 0, "does not watch", "cancel", a.page.URL, "--data", a.data, "--client", "legal")
	for _, s := range []*startedApp{first, second} {
		s.stop()
		if code := <-s.ended; code != 0 {
			t.Errorf("exit code %d, stderr %s", code, &s.err)
		}
	}
}

// TestFlagsOfTransport: what a flag says wins over the file.
func TestFlagsOfTransport(t *testing.T) {
	inFile := &kafka.Config{Brokers: []string{"a:1"}, Prefix: "in.", Lanes: 7}
	for _, c := range []struct {
		file *kafka.Config
		args string
		want *kafka.Config
	}{
		{nil, "", nil},
		{inFile, "", inFile},
		{inFile, "--transport local", nil},
		{inFile, "--transport kafka", inFile},
		{inFile, "--brokers b:2,c:3", &kafka.Config{Brokers: []string{"b:2", "c:3"}, Prefix: "in.", Lanes: 7}},
		{inFile, "--topic-prefix x.", &kafka.Config{Brokers: []string{"a:1"}, Prefix: "x.", Lanes: 7}},
		{nil, "--transport kafka --brokers b:2", &kafka.Config{Brokers: []string{"b:2"}}},
	} {
		var f commonFlags
		cmd := f.addTo(&cobra.Command{}, pipelineFlags)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := f.kafkaConfig(cmd, c.file)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v, want %+v", c.args, got, err, c.want)
		}
	}
	if inFile.Prefix != "in." || len(inFile.Brokers) != 1 {
		t.Errorf("the file's was altered: %+v", inFile)
	}
}

func TestLintConnect(t *testing.T) {
	broker := startCluster(t)
	s := newSharedSetup(t, broker, "")
	r := runCLI(t, "lint", "-c", s.config, "--connect", "--allow", loopback)
	if r.code != 0 || !strings.Contains(r.stdout, ": ok (1 subscription") || !strings.Contains(r.stdout, "topic vokter.changes: missing; a start makes it with 3 partitions") {
		t.Errorf("got %+v", r)
	}
	if again := runCLI(t, "lint", "-c", s.config, "--connect", "--allow", loopback); again != r {
		t.Errorf("the second time: got %+v, want %+v", again, r)
	}
	found := objects(t, runCLI(t, "lint", "-c", s.config, "--connect", "--allow", loopback, "--format", "json"))
	if len(found["ok"]) != 1 || len(found["cluster"]) == 0 || found["cluster"][0]["message"] == "" {
		t.Errorf("got %v", found)
	}
	none := file(t, "c.yaml", "transport: {kafka: {brokers: ['"+broker+"'], create_topics: false}}")
	expectExit(t, 1, "vokter.changes", "lint", "-c", none, "--connect")
	expectExit(t, 1, "other.changes", "lint", "-c", none, "--connect", "--topic-prefix", "other.")
	expectExit(t, 2, "the transport of "+none+" is local, and no sink is of that kind", "lint", "-c", none, "--connect", "--transport", "local")
	expectExit(t, 1, "127.0.0.1:1", "lint", "-c", none, "--connect", "--brokers", "127.0.0.1:1")
}

// TestKafkaMistakes: what the transport finds wrong is placed in the file.
func TestKafkaMistakes(t *testing.T) {
	path := file(t, "c.yaml", `transport:
  kafka:
    brokers: [kafka.example.com]
    topic_prefix: a/b
    session_timeout: 1ms
    tls: {ca: ca.pem}
    sasl: {mechanism: SCRAM, user: vokter, password: hunter2}
`)
	r := runCLI(t, "lint", "-c", path)
	for _, want := range []string{":3:15: transport.kafka.brokers[0]: ", ":4:19: ", ":5:22: ", ":6:10: ", ":7:23: "} {
		if !strings.Contains(r.stdout, path+want) {
			t.Errorf("%s is not in %s", want, r.stdout)
		}
	}
	if r.code != 2 || strings.Contains(r.stdout+r.stderr, "hunter2") {
		t.Errorf("got %+v", r)
	}
}
