package router_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	filesource "github.com/vokter/vokter/sources/file"
	"github.com/vokter/vokter/stages/index"
)

// TestAFileIsCheckedWhenItIsWritten watches a file once a day.
func TestAFileIsCheckedWhenItIsWritten(t *testing.T) {
	box, dir, path := newMailbox(), t.TempDir(), filepath.Join(t.TempDir(), "a.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one text\n")
	cfg := vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": box}, Fetch: vokter.FetchConfig{Files: []string{filepath.Dir(path)}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{
			URL: filesource.URL(path), Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: pipeline.Every(24 * time.Hour),
		}},
	}
	run := func() (transport *local.Transport, stop func()) {
		transport = openTransport(t, dir)
		cfg.Transport = transport
		_, stop = startRouter(t, cfg)
		return transport, stop
	}
	checked := func(transport *local.Transport, times uint64) {
		t.Helper()
		waitFor(t, "a check", func() bool {
			p, err := index.Load(transport.State(flow.GroupIndex, filesource.URL(path)))
			return err == nil && p.Records >= times && p.Open == nil
		})
	}
	transport, stop := run()
	defer stop()
	checked(transport, 1)
	write("one text\nArgus came\n")
	<-box.arrived
	stop()
	write("one text\nanother\n")
	_, stop = run() // what changed while nothing ran is found at the start
	defer stop()
	<-box.arrived
	stop()
	var got []string
	for _, n := range box.take() {
		for _, d := range n.Diffs {
			got = append(got, string(d.Event)+" "+d.Keyword)
		}
	}
	if strings.Join(got, ", ") != "added Argus, removed Argus" {
		t.Errorf("got %q", got)
	}
}

// TestAFolderIsFollowed watches the texts of the files in a folder, once a day.
func TestAFolderIsFollowed(t *testing.T) {
	t.Parallel()
	box, folder := newMailbox(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "one text\n")
	var log lockedBuffer
	transport := openTransport(t, "")
	_, stop := startRouter(t, vokter.Config{
		Transport: transport,
		Sinks:     map[string]pipeline.Sink{"box": box}, Fetch: vokter.FetchConfig{Files: []string{folder}, Rate: 1000},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Subscriptions: []pipeline.Subscription{{
			URL: filesource.URL(folder) + "/", Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: pipeline.Every(24 * time.Hour),
			Follow: &pipeline.Follow{Depth: 1},
		}},
	})
	defer stop()
	checked := func(name string) {
		t.Helper()
		waitFor(t, "a version of "+name, func() bool {
			p, err := index.Load(transport.State(flow.GroupIndex, filesource.URL(filepath.Join(folder, name))))
			return err == nil && len(p.Documents) == 1 && p.Documents[0].N > 0 && p.Open == nil
		})
	}
	checked("a.txt")
	write("a.txt", "one text\nArgus came\n")
	<-box.arrived
	write("b.txt", "a new file\n")
	checked("b.txt")
	write("b.txt", "a new file\nArgus too\n")
	<-box.arrived
	if err := os.Remove(filepath.Join(folder, "a.txt")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the watch of a.txt", func() bool {
		p, err := index.Load(transport.State(flow.GroupIndex, filesource.URL(filepath.Join(folder, "a.txt"))))
		return err == nil && p.Incarnation == ""
	})
	stop()
	if s := log.String(); s != "" {
		t.Errorf("the log warns of a file that was removed: %s", s)
	}
	for i, n := range box.take() {
		if want := filesource.URL(filepath.Join(folder, []string{"a.txt", "b.txt"}[i])); n.URL != want || len(n.Diffs) != 1 {
			t.Errorf("got %d diffs of %s, want 1 of %s", len(n.Diffs), n.URL, want)
		}
	}
}

func TestFilesMustBePermitted(t *testing.T) {
	box := newMailbox()
	cfg := vokter.Config{
		Sinks:         map[string]pipeline.Sink{"box": box},
		Subscriptions: []pipeline.Subscription{{URL: "file:///etc/passwd", Keywords: []string{"root"}, Sinks: []string{"box"}}},
		Documents:     []vokter.Document{{URL: "file:///etc/group", Keep: true}},
		Fetch:         vokter.FetchConfig{Files: []string{"srv"}},
	}
	err := cfg.Validate()
	for _, want := range []string{"subscription 1 (file:///etc/passwd): url: /etc/passwd may not be read; permit it", "document 1: /etc/group may not be read", `files of fetch: "srv" is not an absolute path`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	cfg.Fetch.Files = []string{"/etc"}
	if err := cfg.Validate(); err != nil {
		t.Errorf("with /etc permitted: %v", err)
	}
}

// TestFilesAreCheckedOnce: the files of a new configuration are read once. Those that are watched
// already are checked at the start, since they may have changed while nothing ran.
func TestFilesAreCheckedOnce(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), t.TempDir()
	cfg := vokter.Config{Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetch: vokter.FetchConfig{Files: []string{folder}}}
	var pages []string
	for i := range 300 { // more than one batch of commands
		path := filepath.Join(folder, fmt.Sprintf("%d.md", i))
		if err := os.WriteFile(path, []byte("one text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, filesource.URL(path))
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
			URL: filesource.URL(path), Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: pipeline.Every(24 * time.Hour),
		})
	}
	for start := range uint64(2) {
		transport := openTransport(t, dir)
		cfg.Transport = transport
		r, stop := startRouter(t, cfg)
		defer stop()
		for _, page := range pages {
			waitFor(t, "a check", func() bool {
				p, err := index.Load(transport.State(flow.GroupIndex, page))
				return err == nil && p.Records > start && p.Open == nil
			})
		}
		if _, err := r.Reload(t.Context(), cfg); err != nil { // it waits until all commands of the start are published
			t.Fatal(err)
		}
		for _, page := range pages {
			if err := r.Cancel(t.Context(), page, "another"); err == nil { // it is decided after the commands before it
				t.Fatal("a subscription that does not exist was cancelled")
			}
			if p, err := index.Load(transport.State(flow.GroupIndex, page)); err != nil || p.Check != start+1 {
				t.Fatalf("start %d: %s was checked %d times (%v)", start+1, page, p.Check, err)
			}
		}
		stop()
	}
}
