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
	"syscall"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/slackfake"
)

const loopback = "127.0.0.1/32"

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
  - {url: %q, client: shop, keywords: [out of stock], sinks: [hook, out]}
  - {url: %q, keywords: [x], sinks: [out]}
`, file(t, "secret", "0123456789abcdef0123456789abcdef\n"), p.URL, gone.URL))
	r := runCLI(t, "run", "-c", path, "--allow", loopback, "--checks", "3", "--every", "0s", "--summary", summary)
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
	r := runCLI(t, "run", "-c", path, "--allow", loopback, "--checks", "2", "--every", "0s")
	if r.code != 1 || strings.Count(r.stderr, "vokter-stream: 1 notification not delivered yet; they are kept") != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestRunInUse(t *testing.T) {
	dir := t.TempDir()
	path := file(t, "c.yaml", "data: "+dir+"\nlisten: 127.0.0.1:0\n")
	first := start(t, "run", "-c", path)
	addr := first.awaitAddress(t, dir)
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
	r := runProcess(t, "run", "-c", second, "--summary", summary)
	if r.code != 1 || !strings.Contains(r.stderr, fmt.Sprintf("in use by another process (process %d)", os.Getpid())) {
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
	addr := strings.TrimPrefix(taken.URL, "http://")
	for config, want := range map[string]string{
		"sinks: {screen: {stdout: {}}}\nlisten: " + addr + "\n":                       "cannot listen at " + addr + ": bind: address already in use; name another address",
		"rest: {listen: \"" + addr + "\", token: 0123456789abcdef0123456789abcdef}\n": "rest cannot listen at " + addr + ": bind: address already in use; name another address",
	} {
		r := runCLI(t, "run", "-c", file(t, "c.yaml", config))
		if r.code != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("got %+v, want %s", r, want)
		}
	}
}

func TestWriteFileThroughALink(t *testing.T) {
	target := file(t, "target", "before, and longer")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := checkSummary(link); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, []byte("after")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "after" {
		t.Errorf("got %q, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

func TestCheckSummaryLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := checkSummary(filepath.Join(dir, "s.json")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSecondSignal stops a process at once that waits for a receiver which never answers. The
// next one delivers.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.page.set(http.StatusOK, "<p>Zeus. Out of stock.</p>")
	d := startDaemon(t, s.data, "run", "-c", s.config, "--allow", loopback, "--every", "0s")
	id := <-s.hook.ids // and there is no answer
	d.signal(t, syscall.SIGTERM)
	d.awaitStopping(t)
	ended := make(chan error, 1)
	go func() { ended <- d.Wait() }()
	for len(ended) == 0 { // until one comes behind the moment at which the first was taken
		_ = d.Process.Signal(syscall.SIGTERM)
	}
	if err := <-ended; err == nil || !d.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("got %v, %s", err, &d.stderr)
	}
	expectExit(t, 0, "hook  ok      1        0     ", "list", "--data", s.data)
	s.hook.answers <- http.StatusOK
	s.check(t, "<p>Zeus. Out of stock.</p>")
	if got := <-s.hook.ids; got != id || len(s.hook.ids) != 0 {
		t.Errorf("delivered %s, want %s; %d more", got, id, len(s.hook.ids))
	}
}

// TestHangupOfRun checks that it does not end the process, but makes it read its file.
func TestHangupOfRun(t *testing.T) {
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
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
	waitFor(t, "a check of the new page", func() bool {
		if d.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("the process has ended")
		}
		return other.count() > 0
	})
	d.signal(t, syscall.SIGTERM)
	if err := d.Wait(); err != nil || !strings.Contains(d.stderr.String(), "documents changed") {
		t.Errorf("got %v, %s", err, &d.stderr)
	}
}

// TestRunToSlack carries the changes of a hostile page to channels of Slack, as a bot with
// threads and through a webhook. One of the messages is refused for its layout, and the
// token and the URL are told nowhere.
func TestRunToSlack(t *testing.T) {
	const evil = "&lt;!channel&gt; *x* &amp; &lt;http://e|b&gt; :boom: %41"
	p := newPage(t, "<title>Shop</title><p>Zeus. In stock. "+evil+"</p>", "<title>Shop</title><p>Zeus. Out of stock. "+evil+"</p>",
		"<title>Shop</title><p>Zeus. In stock. "+evil+"</p>")
	fake := slackfake.Start(t, nil)
	fake.Script("C2", slackfake.Answer{Error: "invalid_payload"})
	path := file(t, "c.yaml", fmt.Sprintf(`
fetch: {per_host: {concurrency: 8, rate: 1000/s}}
sinks:
  bot: {slack: {token: %s, channel: "#general", api_url: %q, thread: true}}
  hook: {slack: {webhook_url: %q}}
  out: {stdout: {}}
health: [out]
subscriptions:
  - {url: %q, keywords: [out of stock], sinks: [bot, hook]}
`, slackfake.Token, fake.API(), fake.Webhook("C2"), p.URL))
	r := runCLI(t, "run", "-c", path, "--allow", loopback, "--checks", "3", "--every", "0s", "--log-level", "debug")
	if r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	var bot, hook []slackfake.Message
	for _, m := range fake.Messages() {
		if m.Unfurls || m.Markup || !strings.Contains(m.Text, ": out of stock: Shop "+p.URL) {
			t.Errorf("got %+v", m)
		}
		if m.Webhook {
			hook = append(hook, m)
		} else {
			bot = append(bot, m)
		}
	}
	if len(bot) != 2 || len(hook) != 2 {
		t.Fatalf("%d messages of the bot, %d of the webhook, want 2 each: %s", len(bot), len(hook), r.stderr)
	}
	if bot[0].Thread != "" || bot[1].Thread != bot[0].TS || !bot[1].Broadcast {
		t.Errorf("the bot's are no thread: %+v", bot)
	}
	for _, m := range bot {
		const want = `. \u003c!channel\u003e *x* \u0026 \u003chttp://e|b\u003e :boom: %41"}`
		if !strings.Contains(string(m.Blocks), want) || !strings.Contains(string(m.Metadata), "vokter.notification") {
			t.Errorf("got %s with %s, want in it %s", m.Blocks, m.Metadata, want)
		}
	}
	if hook[0].Blocks != nil || hook[1].Blocks == nil {
		t.Errorf("got %+v, want the first one plain", hook)
	}
	if !strings.Contains(r.stdout, "invalid_payload") {
		t.Errorf("the operator is not told that the layout was refused: %s", r.stdout)
	}
	secret := fake.Webhook("C2")[strings.LastIndexByte(fake.Webhook("C2"), '/')+1:]
	for _, s := range []string{slackfake.Token, secret} {
		if strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("%s is told: %s%s", s, r.stdout, r.stderr)
		}
	}
}
