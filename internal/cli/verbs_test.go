package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestVerbsOfAStoppedDirectory(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.hook.answers <- 200
	s.check(t, "<p>Zeus. In stock.</p>")
	s.check(t, "<p>Zeus. Out of stock.</p>")

	found := objects(t, runCLI(t, "list", "--data", s.data, "--format", "json"))
	if len(found["page"]) != 1 || found["page"][0]["state"] != "active" || found["page"][0]["documents"] != nil ||
		len(found["document"]) != 1 || found["document"][0]["version"] != 2.0 ||
		len(found["subscription"]) != 1 || found["subscription"][0]["client"] != "legal" ||
		len(found["receiver"]) != 1 || found["receiver"][0]["sink"] != "hook" {
		t.Errorf("list: got %v", found)
	}
	found = objects(t, runCLI(t, "explain", s.page.URL, "-c", s.config, "--format", "json"))
	if len(found["check"]) != 2 || found["check"][0]["check"] != 2.0 || len(found["change"]) != 1 || found["change"][0]["version"] != 2.0 {
		t.Fatalf("explain: got %v", found)
	}
	match := found["change"][0]["matches"].([]any)[0].(map[string]any)
	if match["delivery"] != "delivered" || match["attempts"] != 1.0 || match["notification"] != <-s.hook.ids {
		t.Errorf("explain: got %v", match)
	}
	for _, k := range found["keyword"] {
		if matched := k["keyword"] == "out of stock"; k["matched"] != matched || (k["why"] == nil) != matched {
			t.Errorf("explain: got %v", k)
		}
	}
	expectExit(t, 0, "privacy       did not match: ", "explain", s.page.URL, "--data", s.data)
	expectExit(t, 0, `, nobody notified of "privacy"`, "explain", s.page.URL, "--data", s.data, "--keyword", "privacy")
	expectExit(t, 0, `, client "legal" not notified of "privacy"`, "explain", s.page.URL, "--data", s.data, "--keyword", "privacy", "--client", "legal")
	expectExit(t, 1, "is not watched", "explain", s.page.URL+"/other", "--data", s.data)
	expectExit(t, 0, "hook  ok      0        0     ", "list", "--data", s.data)

	for _, verb := range []string{"pause", "cancel", "resume", "check"} {
		expectExit(t, 1, s.page.URL+"/other", verb, s.page.URL+"/other", "--data", s.data)
	}
	expectExit(t, 1, `with --client: "legal"`, "cancel", s.page.URL, "--data", s.data)
	expectExit(t, 1, "vokter-stream: ", "resume", s.page.URL, "--data", s.data)
	expectExit(t, 0, "a configuration has this subscription", "cancel", s.page.URL, "--data", s.data, "--client", "legal")
	if r := runCLI(t, "list", "--data", s.data, "--url", s.page.URL); r.code != 1 || r.stdout != "" {
		t.Errorf("after the cancel: got %+v", r)
	}
	expectExit(t, 1, "vokter-stream: ", "cancel", s.page.URL, "--data", s.data, "--client", "legal")

	// Who subscribes again has a fresh baseline.
	s.check(t, "<p>Zeus. In stock.</p>")
	found = objects(t, runCLI(t, "list", "--data", s.data, "--format", "json"))
	if len(found["document"]) != 1 || found["document"][0]["version"] != 1.0 || len(s.hook.ids) != 0 {
		t.Errorf("after the next start: got %v", found)
	}
}

func TestVerbsOfARunningProcess(t *testing.T) {
	s := newTestSetup(t, "  - {url: \"https://example.com/\", keywords: [x], sinks: [out], interval: 1000h}\nlisten: 127.0.0.1:0\n")
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	// The directory is in use, so that what works has gone over HTTP.
	list := func(filter ...string) map[string][]map[string]any {
		return objects(t, runCLI(t, append([]string{"list", "--data", s.data, "--format", "json"}, filter...)...))
	}
	for len(list()["page"]) < 2 { // the configuration is still being applied
		if t.Context().Err() != nil {
			t.Fatal("the time is over")
		}
	}
	found := list("--client", "legal")
	if len(found["page"]) != 1 || len(found["subscription"]) != 1 {
		t.Errorf("list: got %v", found)
	}
	expectExit(t, 0, s.page.URL, "explain", s.page.URL, "--data", s.data)
	expectExit(t, 0, "no dead letters", "replay", "-c", s.config)
	copied := filepath.Join(t.TempDir(), "copy")
	expectExit(t, 0, "is a copy of", "backup", copied, "--data", s.data)
	expectExit(t, 2, "is not empty", "backup", copied, "--data", s.data)
	expectExit(t, 0, `"kind":"cancelled"`, "cancel", s.page.URL, "--data", s.data, "--client", "legal", "--format", "json")
	expectExit(t, 1, "vokter-stream: ", "cancel", s.page.URL, "--data", s.data, "--client", "legal")
	if r := runCLI(t, "list", "--data", s.data, "--url", s.page.URL); r.stdout != "" || r.code != 1 {
		t.Errorf("after the cancel: got %+v", r)
	}
	// The copy was made before that.
	if found := objects(t, runCLI(t, "list", "--data", copied, "--url", s.page.URL, "--format", "json")); len(found["subscription"]) != 1 {
		t.Errorf("the copy: got %v", found)
	}
	run.stop()
	if code := <-run.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &run.err)
	}
}

// TestStaleListen checks that an address that a killed process left misleads nobody, even
// where the process of another directory has it now.
func TestStaleListen(t *testing.T) {
	t.Parallel()
	a, b := newTestSetup(t, ""), newTestSetup(t, "listen: 127.0.0.1:0\n")
	a.check(t, "<p>one</p>")
	other := start(t, "run", "-c", b.config, "--allow", loopback)
	addr := other.awaitAddress(t, b.data)
	for name, left := range map[string]string{"another process": addr, "nobody": "127.0.0.1:1\n", "no address": "example.com:80\n", "nothing": ""} {
		if err := os.WriteFile(filepath.Join(a.data, "listen"), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		r := runCLI(t, "list", "--data", a.data)
		if r.code != 0 || !strings.Contains(r.stdout, a.page.URL) || strings.Contains(r.stdout, b.page.URL) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	expectExit(t, 0, "does not watch", "cancel", a.page.URL, "--data", a.data, "--client", "legal")
	expectExit(t, 0, b.page.URL, "list", "--data", b.data)
}

// TestSocket: a process without listen is asked at a socket in its directory, in place of one that a killed process left.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(s.data, socketFile)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.await(t, &run.err, "msg=running")
	for { // it is there soon after
		if info, err := os.Stat(socket); err == nil && info.Mode()&os.ModeSocket != 0 && info.Mode().Perm() == 0o600 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for {
		if r := runCLI(t, "health", "--data", s.data); r.code == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	expectExit(t, 0, s.page.URL, "list", "--data", s.data)
	expectExit(t, 0, "is a copy of", "backup", filepath.Join(t.TempDir(), "b"), "--data", s.data)
	run.stop()
	<-run.ended
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	expectExit(t, 1, "no process runs on", "health", "--data", s.data)
}

// TestNoSocket: a path that is too long for a socket is said, and the process goes on.
func TestNoSocket(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.data = filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	run := start(t, "run", "-c", s.config, "--allow", loopback, "--data", s.data)
	run.await(t, &run.err, "the verbs cannot ask this process")
	r := runCLI(t, "list", "--data", s.data)
	if r.code != 1 || !strings.Contains(r.stderr, "in use by") || !strings.Contains(r.stderr, "its log says why it cannot listen") {
		t.Errorf("got %+v", r)
	}
}

// TestGoneAndReplayed is a receiver that says 410, is given up, and comes back.
func TestGoneAndReplayed(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "health: [out]\n")
	s.hook.answers <- http.StatusGone
	s.check(t, "<p>Zeus. In stock.</p>")
	s.check(t, "<p>Zeus. Out of stock.</p>")
	id := <-s.hook.ids
	expectExit(t, 0, "hook  expired since", "list", "--data", s.data)
	expectExit(t, 0, "expired since", "list", "--verbose", "--data", s.data)
	expectExit(t, 0, "  0        1     none known ", "list", "--data", s.data)

	expectExit(t, 0, id, "replay", "-c", s.config, "--sink", "hook", "--dry-run")
	expectExit(t, 1, "no such dead letter", "replay", "-c", s.config, "--sink", "out", "--dry-run")
	expectExit(t, 1, "no such dead letter", "replay", "-c", s.config, "--client", "shop", "--dry-run")
	expectExit(t, 1, "no such dead letter", "replay", "-c", s.config, "--url", s.page.URL+"/other")
	expectExit(t, 2, `did you mean "hook"?`, "replay", "-c", s.config, "--sink", "hok")
	if found := objects(t, runCLI(t, "replay", "-c", s.config, "--since", "1h", "--dry-run", "--format", "json")); len(found["dead_letter"]) != 1 {
		t.Errorf("dry run: got %v", found)
	}
	if len(s.hook.ids) != 0 {
		t.Error("a dry run delivers")
	}

	s.hook.answers <- http.StatusInternalServerError
	expectExit(t, 1, "1 notification", "replay", "-c", s.config, "--allow", loopback)
	if got := <-s.hook.ids; got != id {
		t.Errorf("delivered %s again, want %s", got, id)
	}
	s.hook.answers <- http.StatusOK
	expectExit(t, 0, "ignores which IDs were delivered before", "replay", "-c", s.config, "--allow", loopback)
	if got := <-s.hook.ids; got != id {
		t.Errorf("delivered %s again, want %s", got, id)
	}
	expectExit(t, 0, "hook  ok      0        0     ", "list", "--data", s.data)
	expectExit(t, 0, "no dead letters", "replay", "-c", s.config, "--dry-run")
}

// TestCheckNow checks a page while a process runs. The exit code says whether the check failed.
func TestCheckNow(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	start(t, "run", "-c", s.config, "--allow", loopback, "--every", "1h").awaitAddress(t, s.data)
	waitFor(t, "the first check", func() bool {
		return strings.Contains(runCLI(t, "history", s.page.URL, "-c", s.config).stdout, "baseline")
	})
	expectExit(t, 0, "check 2, nothing new", "check", s.page.URL, "-c", s.config)
	s.page.set(http.StatusNotFound, "")
	expectExit(t, 1, "check 3, failed: HTTP status 404 Not Found", "check", s.page.URL, "-c", s.config)
	s.page.set(http.StatusUnauthorized, "")
	expectExit(t, 1, "; if the page needs credentials, give them in access of the configuration", "check", s.page.URL, "-c", s.config)
	expectExit(t, 0, "give them in access of the configuration, or to watch with --user,", "explain", s.page.URL, "-c", s.config)
	r := runCLI(t, "check", s.page.URL, "-c", s.config, "--format", "json")
	if r.code != 1 || !strings.Contains(r.stdout, `"result":"failed"`) {
		t.Errorf("got %+v", r)
	}
}

// TestOfAnotherClient names the clients of a page to who asks for one that does not watch it.
func TestOfAnotherClient(t *testing.T) {
	s := newTestSetup(t, "")
	s.check(t, "<p>Zeus. In stock.</p>")
	for _, verb := range []string{"pause", "cancel"} {
		expectExit(t, 1, `client "default" does not watch `+s.page.URL+`; name one that does with --client: "legal"`, verb, s.page.URL, "-c", s.config)
	}
	expectExit(t, 0, "client legal is not notified", "pause", s.page.URL, "--client", "legal", "-c", s.config)
}

// TestDocumentsToChoose says what the documents of a page are, where one of them is a value.
func TestDocumentsToChoose(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	expectExit(t, 0, "client shop watches", "subscribe", s.page.URL, "--offer", "price", "--client", "shop", "--sink", "hook", "-c", s.config)
	s.check(t, `<p>Zeus. In stock.</p><script type="application/ld+json">{"@context": "https://schema.org", "@type": "Offer", "price": "49"}</script>`)
	expectExit(t, 1, "(value price; client shop)", "history", s.page.URL, "-c", s.config)
}

// TestSubscribeBeforeTheFirstRun holds that a configuration is enough to subscribe.
func TestSubscribeBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, data := filepath.Join(dir, "v.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("data: "+data+"\nsinks: {out: {stdout: {}}}\ndocuments: [{url: https://example.com/b, keep: true}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectExit(t, 2, "makes it; name the configuration with -c FILE", "subscribe", "https://example.com/a", "cats", "--sink", "out", "--data", data)
	expectExit(t, 0, "client default watches https://example.com/a", "subscribe", "https://example.com/a", "cats", "--sink", "out", "-c", file)
	r := runCLI(t, "subscribe", "https://example.com/a", "cats", "--sink", "out", "-c", file)
	if r.code != 0 || !strings.Contains(r.stdout, "already") || r.stderr != "" {
		t.Errorf("the same again: got %+v", r)
	}
	expectExit(t, 0, "cats  to out  made at run time", "list", "-v", "-c", file)
}

// TestApply applies a list to a directory that no process runs, and to one that a process runs.
func TestApply(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	entry := func(path, more string) string {
		return `{"url":"` + s.page.URL + path + `","client":"crm","keywords":["k"],"interval":"never","sinks":["out"]` + more + `}`
	}
	list := file(t, "list.json", "["+entry("/a", "")+","+entry("/b", "")+"]")
	expectExit(t, 2, "name the list with --origin NAME", "apply", list, "-c", s.config)
	expectExit(t, 2, "no LIST is given", "apply", "--origin", "crm", "-c", s.config)
	expectExit(t, 2, "nope.json", "apply", "nope.json", "--origin", "crm", "-c", s.config)
	for _, none := range []string{"", "{}", "data: d"} {
		expectExit(t, 2, "to cancel all of the list", "apply", file(t, "none.yaml", none), "--origin", "crm", "-c", s.config)
	}
	expectExit(t, 0, "crm, not applied: 2 created, 0 changed, 0 unchanged, 0 removed, 0 refused", "apply", list, "--origin", "crm", "--dry-run", "-c", s.config)
	expectExit(t, 0, "crm: 2 created, 0 changed, 0 unchanged, 0 removed, 0 refused", "apply", list, "--origin", "crm", "-c", s.config)
	unknown := file(t, "unknown.json", "["+strings.ReplaceAll(entry("/a", ""), `"out"`, `"outt"`)+"]")
	expectExit(t, 2, unknown+`: no sink is named "outt"; did you mean "out"?`, "apply", unknown, "--origin", "crm", "-c", s.config)

	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	expectExit(t, 0, "made by the list crm", "list", "-v", "--data", s.data)
	if err := os.WriteFile(list, []byte("["+entry("/a", `,"stem":true`)+","+entry("/c", `,"stemm":true`)+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCLI(t, "apply", list, "--origin", "crm", "--data", s.data)
	if r.code != 1 || !strings.Contains(r.stdout, "refused  2") || !strings.Contains(r.stdout, "stemm: unexpected property") ||
		!strings.HasSuffix(r.stdout, "crm: 0 created, 1 changed, 0 unchanged, 1 removed, 1 refused\n") || !strings.Contains(r.stderr, "1 subscription refused") {
		t.Errorf("got %+v", r)
	}
	exported := runCLI(t, "export", "--client", "crm", "--data", s.data)
	found := objects(t, runCLI(t, "apply", file(t, "list.yaml", exported.stdout), "--origin", "crm", "--data", s.data, "--format", "json"))
	if len(found["subscription"]) != 1 || found["subscription"][0]["outcome"] != "unchanged" || found["applied"][0]["unchanged"] != 1.0 {
		t.Errorf("got %v of what was exported", found)
	}
	expectExit(t, 2, "no_such_key", "apply", file(t, "wrong.yaml", "no_such_key: 1\n"), "--origin", "crm", "--data", s.data)
	expectExit(t, 0, "crm: 0 created, 0 changed, 0 unchanged, 1 removed, 0 refused", "apply", file(t, "empty.json", "[]"), "--origin", "crm", "--data", s.data)
}

func TestHealth(t *testing.T) {
	dir := t.TempDir()
	config := file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n", dir))
	run := start(t, "run", "-c", config)
	run.ready(t, dir)
	expectExit(t, 0, "ok", "health", "--data", dir)
	expectExit(t, 0, "ok", "health", "-c", config)
	expectExit(t, 0, `{"kind":"health","ok":true}`, "health", "-c", config, "--format", "json")
	if err := os.Remove(filepath.Join(dir, "listen")); err != nil { // as without listen
		t.Fatal(err)
	}
	r := runProcess(t, "health", "--data", dir)
	if want := fmt.Sprintf("the process on %s (process %d) cannot be asked: it is still starting, or its log says why it cannot listen", dir, os.Getpid()); r.code != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("got %+v, want %s", r, want)
	}
	run.stop()
	<-run.ended
	expectExit(t, 1, "no process runs on "+dir+"\n", "health", "--data", dir)
	expectExit(t, exitUsage, "no data directory is given", "health")
}

// resumedMeanwhile is a Service that lists an expired subscription, which another command resumes before
// Resume is called.
type resumedMeanwhile struct{ manage.Service }

func (resumedMeanwhile) Pages(context.Context, inspect.ListFilter) ([]inspect.Page, string, error) {
	s := inspect.Subscription{Subscription: pipeline.Subscription{Client: "legal"}, State: inspect.StateExpired}
	return []inspect.Page{{Subscriptions: []inspect.Subscription{s}}}, "", nil
}

func (resumedMeanwhile) Receivers(context.Context, inspect.ListFilter) ([]inspect.Receiver, error) {
	return nil, nil
}

func (resumedMeanwhile) Resume(context.Context, string, string) error {
	return &flow.Refusal{Code: flow.CodeNotFound, Message: "nothing is expired or paused"}
}

func (resumedMeanwhile) Running() <-chan struct{} {
	running := make(chan struct{})
	close(running)
	return running
}

func (resumedMeanwhile) Ready() error { return nil }

// TestResumeOfWhatWasResumed advises to name a client only who named another one.
func TestResumeOfWhatWasResumed(t *testing.T) {
	own, err := manage.Own(resumedMeanwhile{})
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]string{
		"":    "nothing is expired or paused",
		"ops": `name a client that has one with --client: "legal"`,
	} {
		if err := resumePage(t.Context(), process{Client: own}, "https://example.com/", client); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("client %q: got %v, want %s", client, err, want)
		}
	}
}
