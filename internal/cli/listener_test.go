package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/flow"
)

// withToken is a GET with the token in the data directory.
func withToken(t *testing.T, data, url string) *http.Request {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return r
}

// fakePipeline is a pipeline that is in some state.
type fakePipeline struct {
	fakeGauges
	err error
}

func (r fakePipeline) Ready() error { return r.err }

func TestRoutes(t *testing.T) {
	answers := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	api, site := answers(http.StatusTeapot), answers(http.StatusLoopDetected)
	starting := errors.New("starting: no broker answers")
	ended := fmt.Errorf("%w: https://example.com/secret is broken", vokter.ErrStopped)
	for _, c := range []struct {
		err          error
		method, path string
		want         int
		says         string
	}{
		{nil, "GET", "/healthz", 200, "ok"}, {nil, "GET", "/readyz", 200, "ok"}, {nil, "HEAD", "/readyz", 200, ""}, {nil, "GET", "/metrics", 200, "vokter_ready"},
		{nil, "POST", "/readyz", 405, ""}, {nil, "POST", "/metrics", 405, ""},
		{starting, "GET", "/healthz", 200, "ok"}, {starting, "GET", "/readyz", 503, starting.Error()}, {ended, "GET", "/readyz", 503, vokter.ErrStopped.Error()},
		{nil, "GET", "/", 508, ""}, {nil, "GET", "/metrics/", 508, ""}, {nil, "GET", "/api/v1/pages", 418, ""}, {nil, "GET", "/api/", 418, ""}, {nil, "GET", "/debug/pprof/", 508, ""},
	} {
		w := httptest.NewRecorder()
		routes(fakePipeline{fakeGauges{{Name: "vokter_ready", Help: "Whether it is."}}, c.err}, api, http.NotFoundHandler(), site).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), "https:") {
			t.Errorf("%s %s with %v: got %d %s, want %d %s", c.method, c.path, c.err, w.Code, w.Body, c.want, c.says)
		}
	}
}

// TestStrangers: at an address that others reach, whoever has no token learns how the process
// does, and no more; the verbs of its user find the token by themselves.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 0.0.0.0:0\n")
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	_, port, err := net.SplitHostPort(run.awaitAddress(t, s.data))
	if err != nil {
		t.Fatal(err)
	}
	for len(objects(t, runCLI(t, "list", "--data", s.data, "--format", "json"))["page"]) == 0 { // until it is watched
		if t.Context().Err() != nil {
			t.Fatal("the page is not watched")
		}
	}
	at := addressOfTheMachine(t)
	base := "http://" + net.JoinHostPort(at, port)
	hidden := []string{s.page.URL, strings.TrimPrefix(s.page.URL, "http://"), s.hook.URL, "hook", "legal", "privacy", s.data}
	for _, probe := range []string{"/healthz", "/readyz", "/metrics"} {
		status, body := ask(t, newRequest(t, "GET", base+probe))
		if status != http.StatusOK {
			t.Errorf("%s: got %d %s", probe, status, body)
		}
		for _, h := range hidden {
			if named := probe == "/metrics" && h == "hook"; strings.Contains(body, h) && !named { // sinks are labels
				t.Errorf("%s names %s: %s", probe, h, body)
			}
		}
	}
	for path, method := range map[string]string{"/api/v1/backup": "GET", "/api/v1/pages": "GET", "/api/v1/process": "GET", "/api/v1/cancel": "POST", "/": "GET"} {
		if status, body := ask(t, newRequest(t, method, base+path)); status != http.StatusUnauthorized || strings.Contains(body, s.data) {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
	byName := withToken(t, s.data, base+"/api/v1/pages")
	if at != noAddress {
		byName.Host = "vokter.example"
	}
	if status, body := ask(t, byName); status != http.StatusOK || !strings.Contains(body, s.page.URL) {
		t.Errorf("with the token: got %d %s", status, body)
	}

	token := filepath.Join(s.data, "run-token")
	info, err := os.Stat(token)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the token: got %v, %v", info.Mode(), err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	expectExit(t, 0, "is a copy of", "backup", copied, "--data", s.data)
	if _, err := os.Stat(filepath.Join(copied, "run-token")); err == nil {
		t.Error("the backup has the token in it")
	}
	if err := os.Chmod(token, 0o640); err != nil {
		t.Fatal(err)
	}
	expectExit(t, 1, "write chmod 600 "+token, "list", "--data", s.data)
	if err := os.Chmod(token, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectExit(t, 1, "refuses the token in the data directory", "list", "--data", s.data)
	run.stop()
	<-run.ended
}

// TestStartMakesANewToken: whatever a killed process or somebody else left, the token of a run
// is new and its owner's alone, and it goes with the process.
func TestStartMakesANewToken(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>one</p>")
	elsewhere := file(t, "elsewhere", "mine")
	token := filepath.Join(s.data, "run-token")
	seen := map[string]bool{"mine": true}
	for name, leave := range map[string]func() error{
		"nothing":  func() error { return nil },
		"open":     func() error { return errors.Join(os.WriteFile(token, []byte("left\n"), 0o600), os.Chmod(token, 0o666)) },
		"a link":   func() error { return os.Symlink(elsewhere, token) },
		"half one": func() error { return os.WriteFile(token+".new", []byte("lef"), 0o600) },
	} {
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		run := start(t, "run", "-c", s.config, "--allow", loopback)
		run.awaitAddress(t, s.data)
		info, err := os.Lstat(token)
		b, rerr := os.ReadFile(token)
		if err != nil || rerr != nil || info.Mode() != 0o600 || len(b) < 26 || seen[string(b)] {
			t.Errorf("%s: got %v %s, %v, %v", name, info, b, err, rerr)
		}
		seen[string(b)] = true
		run.stop()
		<-run.ended
		if left, _ := filepath.Glob(token + "*"); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
	if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "mine" {
		t.Errorf("what the link named: %s, %v", b, err)
	}
}

// TestWithoutADirectory: nobody can have a token, and the answer says so.
func TestWithoutADirectory(t *testing.T) {
	run := start(t, "run", "-c", file(t, "c.yaml", "listen: 127.0.0.1:0\nsinks:\n  screen: {stdout: {}}\n"))
	run.await(t, &run.err, "msg=listening address=")
	addr := listens.FindStringSubmatch(run.err.String())[1]
	if status, body := ask(t, newRequest(t, "GET", "http://"+addr+"/api/v1/pages")); status != http.StatusForbidden || !strings.Contains(body, "data directory") {
		t.Errorf("got %d %s", status, body)
	}
	if status, _ := ask(t, newRequest(t, "GET", "http://"+addr+"/metrics")); status != http.StatusOK {
		t.Errorf("/metrics: got %d", status)
	}
}

func newRequest(t *testing.T, method, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ask(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// noAddress is the address of a machine that no other one reaches.
const noAddress = "127.0.0.1"

// addressOfTheMachine is one that other machines reach, or noAddress.
func addressOfTheMachine(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return noAddress
}

type fakeGauges []flow.Gauge

func (f fakeGauges) Gauges() []flow.Gauge { return f }

// scrape returns the names of the metrics at addr.
func scrape(t *testing.T, addr string) []string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %s", resp.Status, err, b)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (vokter_\w+) `).FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	return names
}

// documentedMetrics returns the names of the metrics that docs/metrics.md lists in its first table,
// and with kafka also in its second.
func documentedMetrics(t *testing.T, kafka bool) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(doc), "With `transport: kafka`")
	if !found {
		t.Fatal("docs/metrics.md says nothing of Kafka")
	}
	if kafka {
		text = string(doc)
	}
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(vokter_\\w+)` ").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

func TestMetricsAreDocumented(t *testing.T) {
	dir := t.TempDir()
	run := start(t, "run", "-c", file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n", dir)))
	if got, want := scrape(t, run.awaitAddress(t, dir)), documentedMetrics(t, false); !slices.Equal(got, want) {
		t.Errorf("got %q, want those of docs/metrics.md: %q", got, want)
	}
}
