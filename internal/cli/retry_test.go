package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRetryOfAStoppedDirectory attempts the notifications itself, and prints which are still pending.
func TestRetryOfAStoppedDirectory(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	here := []string{"-c", s.config, "--allow", loopback}
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- 503
	s.check(t, "<p>Zeus. Out of stock.</p>")

	expectExit(t, 2, "name the sinks with -c FILE", "retry", "--data", s.data)
	expectExit(t, 1, "no such notification is pending", append(here, "retry", "https://example.com/")...)
	expectExit(t, 2, `no sink is named "hock"`, append(here, "retry", "--sink", "hock")...)
	s.hook.answers <- 503
	expectExit(t, 1, "sink hook: 1 notification is still pending: answered 503", append(here, "retry", s.page.URL)...)
	s.hook.answers <- 200
	expectExit(t, 0, "1 notification is waiting; to try now: vokter-stream retry --sink hook -c ", append(here, "sink", "test", "hook")...)
	s.hook.answers <- 200
	expectExit(t, 0, "hook: no notification is pending any more", append(here, "retry", "--sink", "hook")...)
	expectExit(t, 1, "no such notification is pending", append(here, "retry", "--sink", "hook")...)
	expectExit(t, 0, "no notification is pending", append(here, "retry")...)
}

// TestRetryOfOneSink: a retry and a replay of a stopped directory send what was asked for, and leave what is due for
// other sinks alone.
func TestRetryOfOneSink(t *testing.T) {
	t.Parallel()
	var asked, others atomic.Int32
	var answer atomic.Int32
	answer.Store(http.StatusServiceUnavailable)
	receivers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			others.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		asked.Add(1)
		w.WriteHeader(int(answer.Load()))
	}))
	defer receivers.Close()
	page, data := newPage(t, "<p>Zeus. In stock.</p>"), filepath.Join(t.TempDir(), "d")
	config := file(t, "c.yaml", fmt.Sprintf(`
data: %s
delivery: {retry: [20ms]}
sinks: {hook: {webhook: {url: "%s/hook"}}, other: {webhook: {url: "%[2]s/other"}}}
subscriptions:
  - {url: "%[3]s", keywords: [out of stock], sinks: [hook, other]}
`, data, receivers.URL, page.URL))
	here := []string{"-c", config, "--allow", loopback}
	run := startApp(t, &app{}, append(here, "run", "--every", "20ms")...)
	waitFor(t, "the baseline", func() bool { return page.count() > 1 })
	page.set(http.StatusOK, "<p>Zeus. Out of stock.</p>")
	waitFor(t, "an attempt at both", func() bool { return asked.Load() > 0 && others.Load() > 0 })
	run.stop()
	<-run.ended

	asked.Store(0)
	others.Store(0)
	expect := func(code int, status int32, want string) {
		t.Helper()
		answer.Store(status)
		expectExit(t, code, want, append(here, "retry", "--sink", "hook", "--format", "json")...)
	}
	expect(1, 503, `"kind":"retried","sink":"hook","waiting":1,"pending":1,"reason":"answered 503 Service Unavailable"}`)
	expect(1, 410, "nothing is pending any more, but the last attempt failed: the receiver is gone: answered 410 Gone")
	answer.Store(http.StatusOK)
	expectExit(t, 0, "1 notification put back into delivery", append(here, "replay", "--sink", "hook")...)
	if a, o := asked.Load(), others.Load(); a != 3 || o != 0 {
		t.Errorf("the sink was tried %d times and the other one %d times, want 3 and 0", a, o)
	}
	expectExit(t, 1, "sink other: 1 notification is still pending: answered 503", append(here, "retry", "--sink", "other")...)
	if a, o := asked.Load(), others.Load(); a != 3 || o != 1 {
		t.Errorf("the sink was tried %d times and the other one %d times, want 3 and 1", a, o)
	}
}

// TestResumeOfASink restarts the subscriptions that expired with a sink.
func TestResumeOfASink(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- 410
	s.check(t, "<p>Zeus. Out of stock.</p>")

	s.hook.answers <- 200
	expectExit(t, 0, "vokter-stream resume --sink hook -c ", "sink", "test", "hook", "-c", s.config, "--allow", loopback)
	expectExit(t, 2, "leave it or --sink out", "resume", "--all", "--sink", "hook", "--data", s.data)
	expectExit(t, 2, "without one", "resume", "--all", s.page.URL, "--data", s.data)
	expectExit(t, 1, "no such subscription is expired", "resume", "--sink", "out", "-c", s.config)
	expectExit(t, 0, "is watched again for client legal", "resume", "--sink", "hook", "--data", s.data)
	expectExit(t, 1, "each has another sink, or was resumed. The sink is expired", "resume", "--sink", "hook", "--data", s.data)
	expectExit(t, 0, "no subscription is expired", "resume", "--all", "--data", s.data)
	expectExit(t, 0, `{"kind":"nothing","message":"no subscription is expired"}`, "resume", "--all", "--data", s.data, "--format", "json")
	expectExit(t, 0, `{"kind":"nothing","message":"no notification is pending"}`, "retry", "-c", s.config, "--format", "json")
}

// TestResumeOfASinkWithoutExpiredSubscriptions: a subscription with another sink goes on, and the sink is mended by
// what it takes.
func TestResumeOfASinkWithoutExpiredSubscriptions(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	b, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, bytes.Replace(b, []byte("[hook]"), []byte("[hook, out]"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- 410
	s.check(t, "<p>Zeus. Out of stock.</p>")
	expectExit(t, 1, "no subscription to sink hook is expired: each has another sink, or was resumed. The sink is expired "+
		"(the receiver is gone: answered 410 Gone): mend it, and its next notification makes it active again, or replay --sink hook", "resume", "--sink", "hook", "--data", s.data)
	expectExit(t, 0, "the next when a process starts", "list", "--data", s.data)
}

// TestUnknownSink gives retry, replay, resume and subscribe the name of a sink that does not exist. All of
// them refuse it in the same words, whether a process runs or not.
func TestUnknownSink(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>Zeus. In stock.</p>")
	const want = `--sink: no sink is named "hock"; did you mean "hook"?`
	refused := func(verbs ...string) {
		t.Helper()
		for _, verb := range verbs {
			expectExit(t, 2, want, verb, "--sink", "hock", "-c", s.config)
		}
		expectExit(t, 2, want, "resume", "--sink", "hock", "--data", s.data)
		expectExit(t, 2, want, "subscribe", "https://example.com/", "--sink", "hock", "-c", s.config)
		expectExit(t, 2, want, "subscribe", "https://example.com/", "--sink", "hock", "--data", s.data)
	}
	refused("retry", "replay", "resume")
	expectExit(t, 2, want+"; write -c FILE where the configuration has it, since a stopped data directory knows the sinks only that were used",
		"subscribe", "https://example.com/", "--sink", "hock", "--data", s.data)
	start(t, "run", "-c", s.config, "--allow", loopback).awaitAddress(t, s.data)
	refused("retry", "replay", "resume")
	expectExit(t, 2, want, "retry", "--sink", "hock", "--data", s.data)
}

// messengerServers are the receivers of several kinds of sinks, which take one token.
type messengerServers struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][]string // by kind: the changes that were told
}

// ServeHTTP answers as the servers do, by the first part of the path.
func (p *messengerServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	kind, _, _ := strings.Cut(r.URL.Path[1:], "/")
	right := strings.Contains(fmt.Sprint(r.Header, string(b)), "xoxb-right")
	answers := map[string][2]string{
		"gotify": {`{"id":7}`, `{"error":"Unauthorized","errorCode":401,"errorDescription":"no"}`},
		"ntfy":   {`{"id":"x"}`, `{"code":40101,"http":401,"error":"unauthorized"}`},
		"matrix": {`{"event_id":"$1"}`, `{"errcode":"M_UNKNOWN_TOKEN","error":"no"}`},
		"slack":  {`{"ok":true,"channel":"C1","ts":"1.1"}`, `{"ok":false,"error":"invalid_auth"}`},
	}[kind]
	if !right {
		if kind != "slack" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, answers[1])
		return
	}
	p.mu.Lock()
	for _, change := range []string{"uno", "dos", "tres"} {
		if strings.Contains(string(b), change) {
			p.got[kind] = append(p.got[kind], change)
		}
	}
	p.mu.Unlock()
	fmt.Fprint(w, answers[0])
}

func (p *messengerServers) sent(kind string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got[kind])
}

// TestMendedToken has a wrong token in a file while a page changes three times. With the right
// one all three are told in order, and nothing expired meanwhile.
func TestMendedToken(t *testing.T) {
	t.Parallel()
	page := newPage(t, "<p>none</p>")
	p := &messengerServers{got: make(map[string][]string)}
	p.Server = httptest.NewServer(p)
	defer p.Close()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("xoxb-wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := []string{"gotify", "ntfy", "matrix", "slack"}
	c := file(t, "c.yaml", fmt.Sprintf(`data: %[1]s
allow: {fetch: [127.0.0.0/8], sinks: [127.0.0.0/8]}
delivery: {retry: [10h]}
sinks:
  gotify: {gotify: {url: "%[2]s/gotify", token_file: %[3]s}}
  ntfy: {ntfy: {url: "%[2]s/ntfy/topic", token_file: %[3]s}}
  matrix: {matrix: {homeserver: "%[2]s/matrix", room: "!r:example.org", token_file: %[3]s}}
  slack: {slack: {channel: C1, api_url: "%[2]s/slack/", token_file: %[3]s}}
subscriptions:
  - {url: "%[4]s", keywords: [uno, dos, tres], events: [added], sinks: [gotify, ntfy, matrix, slack]}
`, filepath.Join(dir, "data"), p.URL, token, page.URL))
	looks := make(chan time.Time)
	a := &app{configTicks: looks}
	s := startApp(t, a, "run", "-c", c, "--every", "20ms")
	checked := func() {
		t.Helper()
		for n := page.count(); page.count() < n+3; {
			select {
			case <-t.Context().Done():
				t.Fatal("the page is not checked any more")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	checked()
	for _, change := range []string{"uno", "dos", "tres"} {
		page.set(200, "<p>now it says "+change+"</p>")
		checked()
	}
	s.await(t, &s.err, "the token is refused")
	if err := os.WriteFile(token, []byte("xoxb-right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	looks <- time.Time{} // it is another one,
	looks <- time.Time{} // and stays
	for _, kind := range kinds {
		s.await(t, &s.err, "sink changed: "+kind)
		// An attempt that the change of its sink cuts off is made again.
		sent := func() []string { return slices.Compact(p.sent(kind)) }
		for len(sent()) < 3 {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s was told of %q", kind, p.sent(kind))
			case <-time.After(5 * time.Millisecond):
			}
		}
		if got := sent(); !slices.Equal(got, []string{"uno", "dos", "tres"}) {
			t.Errorf("%s was told of %q", kind, got)
		}
	}
	s.stop()
	<-s.ended
	if log := s.err.String(); strings.Contains(log, "expired") {
		t.Errorf("something expired: %s", log)
	}
}
