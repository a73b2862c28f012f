package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
)

// TestReceivers makes, changes, pauses and removes receivers by the API of a process with a configuration of its own.
func TestReceivers(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	own := newTestReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	c, err := manage.Find(s.data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	put := func(x client.Sink) error { return c.PutSink(t.Context(), x) }
	refused := func(why string, x client.Sink) {
		t.Helper()
		if err := put(x); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: got %v, want %q", x, err, why)
		}
	}
	const secret = "a-secret-${HOME}-of-mine"
	hook := client.Sink{Sink: "mine", Kind: "webhook", Options: map[string]string{"url": own.URL + "/in", "bearer": secret, "success_status": "204\n200"}}
	refused("the configuration has this name", client.Sink{Sink: "hook", Kind: "webhook", Options: hook.Options})
	refused("no kind of sink that can be made", client.Sink{Sink: "mine", Kind: commandKind, Options: map[string]string{"command": "id"}})
	refused("cannot be the name", client.Sink{Sink: "my own", Kind: "webhook", Options: hook.Options})
	refused("there is no such option", client.Sink{Sink: "mine", Kind: "webhook", Options: map[string]string{"url": own.URL, "bearer_file": "/etc/hostname"}})
	refused("url", client.Sink{Sink: "mine", Kind: "webhook", Options: map[string]string{"url": "nonsense"}})
	if all, err := c.Sinks(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("after refusals: %+v, %v", all, err)
	}
	if err := put(hook); err != nil {
		t.Fatal(err)
	}
	if done, err := c.TestSink(t.Context(), "mine"); err != nil || !done.Delivered {
		t.Errorf("the test: %+v, %v", done, err)
	}
	path := filepath.Join(s.data, config.ReceiversFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	// It is told of changes by a subscription, and goes on after a pause with what has waited.
	if _, err := c.Subscribe(t.Context(), pipeline.Subscription{URL: s.page.URL, Client: "me", Sinks: []string{"mine"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveSink(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), `the subscription of "me"`) {
		t.Errorf("it is removed though a subscription names it: %v", err)
	}
	all, err := c.Sinks(t.Context())
	if err != nil || len(all) != 1 || all[0].Options["success_status"] != "204\n200" || all[0].Options["url"] != "" || strings.Join(all[0].Secrets, " ") != "url bearer" {
		t.Fatalf("got %+v, %v", all, err)
	}
	paused := all[0]
	paused.Paused = true
	if err := put(paused); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the baseline", func() bool { return runCLI(t, "show", s.page.URL, "--data", s.data).code == 0 })
	own.received() // the test, and forget it
	s.page.set(http.StatusOK, "<p>Another text, with other words.</p>")
	if err := c.CheckNow(t.Context(), s.page.URL); err != nil {
		t.Fatal(err)
	}
	pending := func() int {
		found, err := c.Receivers(t.Context(), inspect.ListFilter{Sinks: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range found {
			if x.Sink == "mine" {
				return x.Pending
			}
		}
		return 0
	}
	waitFor(t, "a notification that waits", func() bool { return pending() == 1 })
	if n := len(own.received()); n > 0 {
		t.Errorf("a paused receiver got %d", n)
	}
	paused.Paused = false
	if err := put(paused); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its delivery", func() bool { return len(own.received()) == 1 })
	run.stop()
	<-run.ended

	// It is there after a restart, with its secrets, and other verbs know it.
	made, err := config.ReadMadeSinks(s.data)
	if err != nil || made["mine"].Options["bearer"] != secret {
		t.Errorf("kept: %+v, %v", made, err)
	}
	if r := runCLI(t, "sink", "test", "mine", "-c", s.config, "--allow", loopback); r.code != 0 || strings.Contains(r.stdout+r.stderr, secret) {
		t.Errorf("sink test: %+v", r)
	}
}

// TestAppriseReceivers: an Apprise URL becomes the sink of its kind, or goes to a server that knows it, and is not shown.
func TestAppriseReceivers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	run := start(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	run.awaitAddress(t, data)
	c, err := manage.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	put := func(name, url, gateway string) error {
		return c.PutSink(t.Context(), client.Sink{Sink: name, Kind: "apprise", Options: map[string]string{"url": url, "gateway": gateway}})
	}
	if err := put("mail", "mailto://ann:secret-1@gmail.com?to=bob@example.com", ""); err != nil {
		t.Error(err)
	}
	if err := put("other", "pover://user@secret-2", ""); err == nil || !strings.Contains(err.Error(), "name an Apprise server") {
		t.Errorf("another service: got %v", err)
	}
	if err := put("other", "pover://user@secret-2", "https://apprise.example.com"); err != nil {
		t.Error(err)
	}
	all, err := c.Sinks(t.Context())
	if err != nil || len(all) != 2 || all[0].Kind != "email" || all[0].Options["host"] != "smtp.gmail.com" || all[1].Kind != "webhook" {
		t.Fatalf("got %+v, %v", all, err)
	}
	for _, x := range all {
		for name, text := range x.Options {
			if strings.Contains(text, "secret-") {
				t.Errorf("%s shows %s: %s", x.Sink, name, text)
			}
		}
		if err := c.PutSink(t.Context(), x); err != nil { // the secrets are kept
			t.Errorf("%s: %v", x.Sink, err)
		}
		if err := c.RemoveSink(t.Context(), x.Sink); err != nil {
			t.Errorf("%s: %v", x.Sink, err)
		}
	}
	run.stop()
	<-run.ended
}
