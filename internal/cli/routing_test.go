package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// manyPages serves pages at /0, /1 and so on, which all change together.
type manyPages struct {
	*httptest.Server
	round atomic.Int64
	read  sync.Map // paths that were read in the current round
}

func newManyPages(t *testing.T) *manyPages {
	p := new(manyPages)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		round := p.round.Load()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>Page %s</title><p>News of round number%d</p>", r.URL.Path, round)
		p.read.Store(fmt.Sprint(round, r.URL.Path), true)
	}))
	t.Cleanup(p.Close)
	return p
}

// allRead reports whether n pages were read in the current round.
func (p *manyPages) allRead(n int) bool {
	for i := range n {
		if _, ok := p.read.Load(fmt.Sprint(p.round.Load(), "/", i)); !ok {
			return false
		}
	}
	return true
}

// entries returns subscriptions to n pages.
func (p *manyPages) entries(n int, sink string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {url: '%s/%d', keywords: [number1, number2, number3], sinks: [%s], events: [added]}\n", p.URL, i, sink)
	}
	return b.String()
}

// TestFallbackThroughKills: a sink is down, its fallback takes over, and the process is killed
// again and again: nothing is lost, and no change has two IDs.
func TestFallbackThroughKills(t *testing.T) {
	t.Parallel()
	const pages, rounds = 10, 3
	p := newManyPages(t)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(down.Close)
	var mu sync.Mutex
	ids := make(map[string]map[string]int) // by page and version
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var n pipeline.Notification
		if err := json.Unmarshal(b, &n); err != nil {
			t.Errorf("%v: %s", err, b)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, diff := range n.Diffs {
			key := n.URL + " " + diff.Keyword
			if ids[key] == nil {
				ids[key] = make(map[string]int)
			}
			ids[key][n.ID]++
		}
	}))
	t.Cleanup(hook.Close)
	arrived := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(ids)
	}
	data := filepath.Join(t.TempDir(), "data")
	path := file(t, "c.yaml", fmt.Sprintf(`
data: %s
listen: 127.0.0.1:0
allow: {fetch: [%s], sinks: [%[2]s]}
fetch: {per_host: {rate: 1000/s, concurrency: 8}}
delivery: {retry: [200ms]}
sinks:
  team: {route: {to: chat}}
  chat: {webhook: {url: "%s/"}, fallback: {to: mail, after: 1s}}
  mail: {webhook: {url: "%s/"}}
subscriptions:
%s`, data, loopback, down.URL, hook.URL, p.entries(pages, "team")))
	run := func() *daemonProcess {
		os.Remove(filepath.Join(data, "listen"))
		return startDaemon(t, data, "run", "-c", path, "--every", "100ms", "--log-level", "error")
	}
	d := run()
	waitFor(t, "the baselines", func() bool { return p.allRead(pages) })
	for round := 1; round <= rounds; round++ {
		p.round.Add(1)
		waitFor(t, "the changes", func() bool { return p.allRead(pages) })
		for i := range 3 { // while it waits, while it passes on, and while the fallback delivers
			waitFor(t, "a part of what is due", func() bool { return arrived() >= (round-1)*pages+i*pages/3 })
			d.signal(t, syscall.SIGKILL)
			_ = d.Wait()
			d = run()
		}
		waitFor(t, "all of the round", func() bool { return arrived() == round*pages })
	}
	d.signal(t, syscall.SIGTERM)
	_ = d.Wait()
	for key, of := range ids {
		if len(of) != 1 {
			t.Errorf("%s came under the IDs %v, want one", key, of)
		}
	}
}
