package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

const loopback = "127.0.0.1/32"

func TestDemoJSON(t *testing.T) {
	r := vs(t, "demo", "--changes", "3", "--format", "json")
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("got %+v", r)
	}
	all := notifications(t, r.stdout)
	if len(all) != 3 {
		t.Fatalf("got %d notifications, want 3: %s", len(all), r.stdout)
	}
	events, ids := map[pipeline.Event]bool{}, map[string]bool{}
	for _, n := range all {
		ids[n.ID] = true
		if n.Status != "ok" || !strings.HasPrefix(n.URL, "http://127.0.0.1:") || len(n.Diffs) == 0 {
			t.Errorf("got %+v", n)
		}
		for _, d := range n.Diffs {
			events[d.Event] = true
			if d.Keyword == "" || d.Text == "" || !strings.Contains(d.Snippet, d.Text) {
				t.Errorf("got %+v", d)
			}
		}
	}
	if !events[pipeline.Added] || !events[pipeline.Removed] || len(ids) != 3 {
		t.Errorf("events %v, IDs %v", events, ids)
	}
}

func TestDemoText(t *testing.T) {
	r := vs(t, "demo", "--changes", "2", "--format", "text")
	lines := strings.Split(r.stdout, "\n")
	if r.code != 0 || r.stderr != "" || len(lines) < 6 {
		t.Fatalf("got %+v", r)
	}
	if !strings.HasPrefix(lines[0], "A small shop at http://127.0.0.1:") || !strings.Contains(lines[3], "Ctrl-C") || lines[4] != "" {
		t.Errorf("it begins with %q", lines[:5])
	}
	for _, l := range lines[:4] {
		if len(l) >= 80 {
			t.Errorf("%q does not fit in 80 columns", l)
		}
	}
	if !strings.Contains(r.stdout, "The page said:\n    Sold out. The glassblower is at work.\n    Ada looks through the window.\nNow it says:\n    In stock: twelve") ||
		!strings.Contains(r.stdout, "To try next:\n  vokter-stream watch URL") {
		t.Errorf("got %s", r.stdout)
	}
	if !strings.Contains(r.stdout, "  + in stock  ") || !strings.Contains(r.stdout, "  - sold out  ") {
		t.Errorf("got %s", r.stdout)
	}
}

// TestDemoPlot checks that every change of the story is notified.
func TestDemoPlot(t *testing.T) {
	n := 2 * len(scenes)
	r := vs(t, "demo", "--changes", fmt.Sprint(n), "--format", "json")
	all := notifications(t, r.stdout)
	if len(all) != n {
		t.Fatalf("got %d notifications, want %d", len(all), n)
	}
	for i, m := range all {
		if m.Version != uint64(i+2) {
			t.Fatalf("notification %d is about version %d, want %d: a change said nothing", i, m.Version, i+2)
		}
	}
}

// TestDemoOnce checks that the story is played once.
func TestDemoOnce(t *testing.T) {
	a := &app{pace: time.Millisecond}
	s := startApp(t, a, "demo")
	if code := <-s.ended; code != 0 || strings.Count(s.out.String(), "You are told:\n") != len(scenes)-1 {
		t.Errorf("exit code %d, printed %s", code, &s.out)
	}
}

func TestDemoEndsBySignal(t *testing.T) {
	s := start(t, "demo", "--format", "json")
	s.await(t, &s.out, "\n")
	s.stop()
	if code := <-s.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &s.err)
	}
}

// TestWatch is the life of a watcher that cron runs.
func TestWatch(t *testing.T) {
	p := newPage(t, "<p>Zeus. In stock.</p>")
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	watch := func(extra ...string) result {
		return vs(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json",
			"--ignore-case", p.URL + "/a.html", "out of stock"}, extra...)...)
	}
	seen := map[string]bool{}
	for i, c := range []struct {
		body string
		want pipeline.Event
	}{
		{"<p>Zeus. In stock.</p>", ""},
		{"<p>Zeus. Out of stock.</p>", pipeline.Added},
		{"<p>Zeus. Out of stock.</p>", ""},
		{"<p>Zeus. In stock.</p>", pipeline.Removed},
		{"<p>Zeus. Out of stock.</p>", pipeline.Added},
	} {
		p.set(http.StatusOK, c.body)
		r := watch()
		if r.code != 0 {
			t.Fatalf("run %d: got %+v", i, r)
		}
		if p.count() != i+1 {
			t.Fatalf("run %d: %d GETs", i, p.count())
		}
		all := notifications(t, r.stdout)
		if c.want == "" {
			if len(all) != 0 {
				t.Errorf("run %d: got %s", i, r.stdout)
			}
			continue
		}
		if len(all) != 1 || len(all[0].Diffs) != 1 {
			t.Fatalf("run %d: got %s", i, r.stdout)
		}
		d := all[0].Diffs[0]
		if d.Event != c.want || d.Keyword != "out of stock" || !strings.Contains(d.Text, "Out of") || seen[all[0].ID] || all[0].URL != p.URL+"/a.html" {
			t.Errorf("run %d: got %s", i, r.stdout)
		}
		seen[all[0].ID] = true
	}
}

func TestWatchRefusedAddress(t *testing.T) {
	p := newPage(t, "<p>x</p>")
	r := vs(t, "watch", "--data", t.TempDir(), "--checks", "1", p.URL, "x")
	if r.code != 1 || !strings.Contains(r.stderr, "127.0.0.1") || !strings.Contains(r.stderr, "--allow") || r.stdout != "" || p.count() != 0 {
		t.Errorf("got %+v after %d GETs", r, p.count())
	}
}

func TestWatchFailedCheck(t *testing.T) {
	p := newPage(t, "<p>x</p>")
	p.set(http.StatusNotFound, "gone")
	dir := t.TempDir()
	watch := func() result { return vs(t, "watch", "--data", dir, "--allow", loopback, "--checks", "1", p.URL, "x") }
	if r := watch(); r.code != 1 || !strings.Contains(r.stderr, "the last check of "+p.URL+"/ failed: ") || !strings.Contains(r.stderr, "404") {
		t.Errorf("got %+v", r)
	}
	p.set(http.StatusOK, "<p>x</p>")
	if r := watch(); r.code != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestWatchOnlyItsPage watches two pages in one data directory.
func TestWatchOnlyItsPage(t *testing.T) {
	a, b := newPage(t, "<p>one</p>"), newPage(t, "<p>one</p>")
	dir := t.TempDir()
	watch := func(p *page, extra ...string) []pipeline.Notification {
		r := vs(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json", p.URL, "two"}, extra...)...)
		if r.code != 0 {
			t.Fatalf("got %+v", r)
		}
		return notifications(t, r.stdout)
	}
	watch(a)
	watch(b)
	if a.count() != 1 || b.count() != 1 {
		t.Fatalf("%d and %d GETs, want 1 each", a.count(), b.count())
	}
	a.set(http.StatusOK, "<p>two</p>")
	b.set(http.StatusOK, "<p>two</p>")
	if got := watch(b); len(got) != 1 || a.count() != 1 {
		t.Errorf("got %+v, %d GETs of the other page", got, a.count())
	}
	// The subscription to the first page outlived the runs for the second.
	if got := watch(a); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	// Other options of the same pair replace the earlier ones.
	a.set(http.StatusOK, "<p>three</p>")
	if got := watch(a, "--events", "added"); len(got) != 0 {
		t.Errorf("got %+v, want nothing about what was removed", got)
	}
}

func TestWatchFlags(t *testing.T) {
	p := newPage(t, `<main><p>Old</p></main><nav>x</nav>`)
	dir := t.TempDir()
	watch := func() result {
		return vs(t, "watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json", p.URL, "House of the Gods",
			"--stem", "--filter-stopwords", "--ignore-diacritics", "--match", "terms", "--moved", "--language", "en", "--client", "me",
			"--snippet-offset", "5", "--select", "main", "--remove", "{from: .ad, to: .end}", "--ignore", "[0-9]+ visitors",
			"--interval", "1h", "--events", "added,removed", "--confirm", "1")
	}
	if r := watch(); r.code != 0 || r.stdout != "" {
		t.Fatalf("got %+v", r)
	}
	p.set(http.StatusOK, `<main><p>Old god houses, 12 visitors</p><p class=ad>house god</p><p class=end>end</p></main><nav>house god</nav>`)
	r := watch()
	all := notifications(t, r.stdout)
	if len(all) != 1 || all[0].Client != "me" || len(all[0].Diffs) != 1 || !strings.Contains(all[0].Diffs[0].Text, "god houses") {
		t.Errorf("got %+v", r)
	}
}

// TestRun carries changes of a page to a webhook and writes a summary.
func TestRun(t *testing.T) {
	p := newPage(t, "<p>Zeus. In stock.</p>", "<p>Zeus. Out of stock.</p>", "<p>Zeus. In stock.</p>")
	gone := newPage(t, "gone")
	gone.set(http.StatusNotFound, "gone")
	got := make(chan pipeline.Notification, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var n pipeline.Notification
		if err := json.Unmarshal(b, &n); err != nil || r.Header.Get("webhook-id") != n.ID || r.Header.Get("webhook-signature") == "" {
			t.Errorf("got %v, %v: %s", err, r.Header, b)
		}
		got <- n
	}))
	t.Cleanup(hook.Close)
	summary := filepath.Join(t.TempDir(), "s.json")
	t.Setenv("HOOK_URL", hook.URL+"/in")
	path := file(t, "c.yaml", fmt.Sprintf(`
fetch: {per_host: {concurrency: 8, rate: 1000/s}}
sinks:
  hook: {webhook: {url: "${HOOK_URL}", secret_file: %q}}
  out: {stdout: {}}
subscriptions:
  - {url: %q, client: shop, keywords: [out of stock], ignore_case: true, sinks: [hook, out]}
  - {url: %q, keywords: [x], sinks: [out]}
`, file(t, "secret", "0123456789abcdef0123456789abcdef\n"), p.URL, gone.URL))
	r := vs(t, "run", "-c", path, "--allow", loopback, "--checks", "3", "--every", "0s", "--summary", summary)
	// The page that is gone failed, which the exit code says.
	if r.code != 1 || p.count() != 3 || !strings.Contains(r.stderr, "the last check of "+gone.URL+"/ failed: HTTP status 404 Not Found\n") {
		t.Fatalf("got %+v, %d GETs", r, p.count())
	}
	var events []pipeline.Event
	for range 2 {
		n := <-got
		events = append(events, n.Diffs[0].Event)
	}
	if want := []pipeline.Event{pipeline.Added, pipeline.Removed}; !slices.Equal(events, want) {
		t.Errorf("got %v, want %v", events, want)
	}
	if len(notifications(t, r.stdout)) != 2 {
		t.Errorf("printed %s", r.stdout)
	}
	b, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var s inspect.Summary
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	want := inspect.Counts{Checks: 6, Failed: 3, Versions: 3, Changes: 2, Notifications: 4, Delivered: 4}
	if s.Counts != want || len(s.Documents) != 2 {
		t.Errorf("got %s, want %+v", b, want)
	}
}

// TestRunUndelivered checks that a run of some checks fails where a receiver does.
func TestRunUndelivered(t *testing.T) {
	p := newPage(t, "<p>one</p>", "<p>two</p>")
	hook := newPage(t, "")
	hook.set(http.StatusServiceUnavailable, "")
	path := file(t, "c.yaml", fmt.Sprintf(`
data: %s
delivery: {retry: [1h]}
fetch: {per_host: {rate: 1000/s}}
sinks: {hook: {webhook: {url: %q}}}
subscriptions: [{url: %q, keywords: [two], sinks: [hook]}]
`, t.TempDir(), hook.URL, p.URL))
	r := vs(t, "run", "-c", path, "--allow", loopback, "--checks", "2", "--every", "0s")
	if r.code != 1 || strings.Count(r.stderr, "vokter-stream: 1 notification not delivered yet; they are kept") != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestRunInUse(t *testing.T) {
	dir := t.TempDir()
	path := file(t, "c.yaml", "data: "+dir+"\nlisten: 127.0.0.1:0\n")
	first := start(t, "run", "-c", path)
	addr := first.listening(t, dir)
	for _, probe := range []string{"/healthz", "/readyz"} {
		resp, err := http.Get("http://" + addr + probe)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", probe, resp.Status)
		}
	}
	// The fixed port is taken as well: the directory is what the user has to hear about.
	second := file(t, "d.yaml", fmt.Sprintf("data: %s\nlisten: %s\n", dir, addr))
	summary := filepath.Join(t.TempDir(), "s.json")
	r := process(t, "run", "-c", second, "--summary", summary)
	if r.code != 1 || !strings.Contains(r.stderr, "in use by another process") {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Stat(summary); !os.IsNotExist(err) {
		t.Errorf("a run that did not start wrote a summary: %v", err)
	}
	first.stop()
	if code := <-first.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &first.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "listen")); !os.IsNotExist(err) {
		t.Errorf("the listener's address is still there: %v", err)
	}
}

func TestListenTaken(t *testing.T) {
	taken := newPage(t, "")
	path := file(t, "c.yaml", "listen: "+strings.TrimPrefix(taken.URL, "http://")+"\n")
	r := vs(t, "run", "-c", path)
	if r.code != 1 || !strings.Contains(r.stderr, "cannot listen at 127.0.0.1:") {
		t.Errorf("got %+v", r)
	}
}
