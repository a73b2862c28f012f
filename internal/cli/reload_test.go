package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/sources/browser"
	"github.com/vokter/vokter/test/wasmtest"
)

// reloadTest is a reloader whose looks and hangups the test makes, in a bubble of synctest.
type reloadTest struct {
	*reloader
	look, hangup func()
	loads        int
	applied      []string
	refuse       error
	log          buffer
}

func newReloadTest(t *testing.T, path string) *reloadTest {
	t.Helper()
	looks, hangups := make(chan time.Time), make(chan os.Signal)
	r := new(reloadTest)
	files := new(fileSet)
	used := digestContent(path, files)
	started, err := config.Parse(path, []byte("data: a\n"), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.reloader = &reloader{
		path: path, files: files, ticks: looks, hangups: hangups, log: slog.New(slog.NewTextHandler(&r.log, nil)), applied: used, seen: used,
		started: started, now: started,
		load: func() (*config.Config, error) {
			r.loads++
			files.reset()
			return config.Load(path, config.Options{Named: files.add})
		},
		apply: func(_ context.Context, c vokter.Config) ([]string, error) {
			r.applied = append(r.applied, c.Dir)
			return []string{"data is " + c.Dir}, r.refuse
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	r.look = func() { looks <- time.Time{}; synctest.Wait() }
	r.hangup = func() { hangups <- syscall.SIGHUP; synctest.Wait() }
	return r
}

func (r *reloadTest) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *reloadTest) tick(n int) {
	for range n {
		r.look()
	}
}

func TestReloadOnceTheFileHasSettled(t *testing.T) { synctest.Test(t, testReloadOnceTheFileHasSettled) }

func testReloadOnceTheFileHasSettled(t *testing.T) {
	r := newReloadTest(t, file(t, "c.yaml", "data: a\n"))
	r.tick(3)
	if r.loads != 0 {
		t.Fatalf("a file that did not change was read %d times", r.loads)
	}
	r.write(t, "data: b\n")
	r.tick(1)
	r.write(t, "data: c\n")
	r.tick(1)
	if got := fmt.Sprint(r.applied); got != "[]" {
		t.Errorf("a file that was still being written was applied: %s", got)
	}
	r.tick(3)
	if got := fmt.Sprint(r.applied); got != "[c]" {
		t.Errorf("applied %s, want c once", got)
	}
	if log := r.log.String(); !strings.Contains(log, "is applied") || !strings.Contains(log, "data is c") {
		t.Errorf("logged %s", log)
	}
}

func TestReloadOnHangup(t *testing.T) { synctest.Test(t, testReloadOnHangup) }

func testReloadOnHangup(t *testing.T) {
	r := newReloadTest(t, file(t, "c.yaml", "data: a\n"))
	r.hangup()
	r.write(t, "data: b\n")
	r.hangup()
	r.tick(3)
	if got := fmt.Sprint(r.applied); got != "[a b]" {
		t.Errorf("applied %s, want [a b]", got)
	}
}

func TestReloadOfMistakes(t *testing.T) { synctest.Test(t, testReloadOfMistakes) }

func testReloadOfMistakes(t *testing.T) {
	r := newReloadTest(t, file(t, "c.yaml", "data: a\n"))
	r.write(t, "dta: a\nmin_free: 7\n")
	r.tick(5)
	log := r.log.String()
	if len(r.applied) > 0 || r.loads != 1 || !strings.Contains(log, r.path+":1:1: ") || !strings.Contains(log, r.path+":2:11: ") {
		t.Errorf("applied %v after %d loads, logged %s", r.applied, r.loads, log)
	}
	r.write(t, "data: b\n")
	r.tick(3)
	if got := fmt.Sprint(r.applied); got != "[b]" {
		t.Errorf("applied %s, want [b]", got)
	}
}

func TestReloadOfAFileThatIsGone(t *testing.T) { synctest.Test(t, testReloadOfAFileThatIsGone) }

func testReloadOfAFileThatIsGone(t *testing.T) {
	r := newReloadTest(t, file(t, "c.yaml", "data: a\n"))
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	r.tick(1)
	if log := r.log.String(); log != "" {
		t.Errorf("logged an error while an editor may be replacing the file: %s", log)
	}
	r.tick(4)
	if log := r.log.String(); r.loads != 0 || strings.Count(log, "the configuration file cannot be read") != 1 {
		t.Errorf("%d loads, logged %s", r.loads, log)
	}
}

// TestReloadOfPagesInTheBrowser changes how a page is opened: at once where the rest can be applied.
func TestReloadOfPagesInTheBrowser(t *testing.T) {
	synctest.Test(t, testReloadOfPagesInTheBrowser)
}

func testReloadOfPagesInTheBrowser(t *testing.T) {
	const page = "documents: [{url: https://example.com/, keep: true, fetch: %s}]\n"
	r := newReloadTest(t, file(t, "c.yaml", fmt.Sprintf(page, "http")))
	mode := func() browser.Mode { return r.started.Browser.Config().Pages["https://example.com/"].Mode }
	r.refuse = errors.New("the disk is full")
	r.write(t, fmt.Sprintf(page, "auto")+"browser: {tabs: 3}\n")
	r.tick(3)
	if mode() == browser.Auto {
		t.Errorf("the mode is %s though the configuration was not applied", mode())
	}
	r.refuse = nil
	r.tick(3)
	log := r.log.String()
	if mode() != browser.Auto || strings.Count(log, "fetch changed: https://example.com/") != 1 ||
		strings.Count(log, "browser changed: this takes effect with the next start") != 1 {
		t.Errorf("the mode is %s, logged %s", mode(), log)
	}
}

// TestReloadTriesAgain fails to apply a configuration that can be applied later.
func TestReloadTriesAgain(t *testing.T) { synctest.Test(t, testReloadTriesAgain) }

func testReloadTriesAgain(t *testing.T) {
	r := newReloadTest(t, file(t, "c.yaml", "data: a\n"))
	r.write(t, "data: b\n")
	for i := range 5 {
		r.refuse = fmt.Errorf("the disk is full (for %ds)", i)
		r.look()
	}
	if n := strings.Count(r.log.String(), "the disk is full"); n != 1 || len(r.applied) < 2 {
		t.Errorf("logged %d times, tried %d times: %s", n, len(r.applied), &r.log)
	}
	r.refuse = nil
	r.tick(2)
	tried := len(r.applied)
	r.tick(2)
	if !strings.Contains(r.log.String(), "is applied") || len(r.applied) != tried {
		t.Errorf("%d tries, then %d: %s", tried, len(r.applied), &r.log)
	}
}

// TestPipesAreReadOnce checks that a configuration from a pipe is not taken for empty later.
func TestPipesAreReadOnce(t *testing.T) { synctest.Test(t, testPipesAreReadOnce) }

func testPipesAreReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip(err)
	}
	r := newReloadTest(t, path)
	r.tick(3)
	r.hangup()
	if log := r.log.String(); r.loads != 0 || !strings.Contains(log, "not a regular file") {
		t.Errorf("%d loads, logged %s", r.loads, log)
	}
}

// TestRunReloads changes the configuration of a running pipeline.
func TestRunReloads(t *testing.T) {
	p := newPage(t, "<p>one</p>")
	text := func(keyword string) string {
		return fmt.Sprintf("fetch: {per_host: {rate: 1000/s}}\nsinks: {out: {stdout: {}}}\nsubscriptions: [{url: %q, keywords: [%s], sinks: [out]}]\n", p.URL, keyword)
	}
	path := file(t, "c.yaml", text("two"))
	a := &app{configTicks: make(chan time.Time), hangups: make(chan os.Signal)}
	s := startApp(t, a, "run", "-c", path, "--allow", loopback, "--every", "10ms")
	s.await(t, &s.err, "msg=running")
	for i, c := range []struct{ text, want string }{
		{"subscriptions: 7\n", path + ":1:16: "},
		{text("three") + "listen: 127.0.0.1:0\ntransport: {kafka: {brokers: [\"127.0.0.1:1\"]}}\n", "subscription changed: " + p.URL},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		a.hangups <- syscall.SIGHUP
		s.await(t, &s.err, c.want)
		if i == 1 {
			s.await(t, &s.err, "listen changed: this takes effect with the next start")
			s.await(t, &s.err, "transport changed: this takes effect with the next start")
		}
	}
	waitFor(t, "the check after the baseline", func() bool { return p.count() >= 2 })
	p.set(http.StatusOK, "<p>two and three</p>")
	s.await(t, &s.out, "\n")
	s.stop()
	if code := <-s.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &s.err)
	}
	if all := notifications(t, s.out.String()); len(all) != 1 || len(all[0].Diffs) != 1 || all[0].Diffs[0].Keyword != "three" {
		t.Errorf("got %s", &s.out)
	}
}

// TestReaderIsReplacedWhileItRuns: a module is replaced by a better one, by one that was not
// written to its end, and by one that hangs; another page is watched all the while.
func TestReaderIsReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	var round atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".x") {
			w.Header().Set("Content-Type", "application/x")
		}
		fmt.Fprintf(w, "round %d", round.Add(1))
	}))
	t.Cleanup(site.Close)
	module, words := filepath.Join(t.TempDir(), "x.wasm"), wasmtest.Program(wasmtest.Copy(), "")
	put := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(module, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(wasmtest.Program(wasmtest.Write(2)+wasmtest.Exit(1), "not yet"))
	text := fmt.Sprintf(`fetch: {per_host: {rate: 10000/s}}
readers: {x: {wasm: %q, types: [application/x], timeout: 2s}}
expire: {after: never}
sinks: {out: {stdout: {}}}
subscriptions:
  - {url: "%s/page.x", keywords: [round], sinks: [out]}
  - {url: "%[2]s/other", keywords: [round], sinks: [out]}
`, module, site.URL)
	path := file(t, "c.yaml", text)
	a := &app{hangups: make(chan os.Signal)}
	s := startApp(t, a, "run", "-c", path, "--allow", loopback, "--every", "10ms", "--log-level", "debug")
	reload := func(want string) {
		t.Helper()
		a.hangups <- syscall.SIGHUP
		s.await(t, &s.err, want)
	}
	s.await(t, &s.err, "the module x.wasm cannot read the page: not yet")

	put(words)
	reload("reader changed: x")
	s.await(t, &s.err, "check succeeded again")

	put(words[:len(words)-7])
	reload("perhaps the file was not written to its end")
	seen := round.Load()
	waitFor(t, "more checks", func() bool { return round.Load() > seen+10 })
	if log := s.err.String(); strings.Count(log, "level=WARN") != 1 {
		t.Errorf("the module that there was does not go on: %s", log)
	}

	put(wasmtest.Program(wasmtest.Forever, "x"))
	reload("reader changed: x")
	s.await(t, &s.err, "the module x.wasm took longer than 2s, which is its timeout")

	put(words)
	if err := os.WriteFile(path, []byte(strings.Replace(text, "readers:", "#", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	reload("reader removed: x")
	s.await(t, &s.err, "there is no reader for pages of type")
	s.stop()
	<-s.ended
}
