package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vokter/vokter/test/wasmtest"
)

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
