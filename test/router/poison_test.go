package router_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// wrapType wraps what a group does with messages of a type.
func wrapType(group, typ string, do func(next flow.Processor, ctx context.Context, tx flow.Tx, m flow.Message) error) map[string][]flow.Middleware {
	return map[string][]flow.Middleware{group: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type != typ {
				return next.Process(ctx, tx, m)
			}
			return do(next, ctx, tx, m)
		})
	}}}
}

// dieEnv in the environment of TestDying says where a process has its data and what it watches.
const dieEnv = "VOKTER_TEST_DIE_AT"

// runUntilItDies runs a process on dir that checks the pages and dies while it compares two versions of one.
func runUntilItDies(t *testing.T, dir string, pages ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDying$")
	cmd.Env = append(os.Environ(), dieEnv+"="+strings.Join(append([]string{dir}, pages...), " "))
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != diedExitCode {
		t.Fatalf("the process did not die of it: %v, %s", err, out)
	}
}

// crashes is how many processes may die of a message.
const crashes = 3

// diedExitCode is the exit code of a process that dies of a message.
const diedExitCode = 77

// TestDying is such a process.
func TestDying(t *testing.T) {
	if os.Getenv(dieEnv) == "" {
		t.Skip("it is run by other tests")
	}
	args := strings.Fields(os.Getenv(dieEnv))
	cfg := dyingConfig(newMailbox(), args[0], args[1:]...)
	cfg.Only = args[1:2]
	if strings.HasSuffix(args[1], "/deadly") {
		cfg.Readers = []pipeline.Reader{deadlyReader{}}
		runToEnd(t, cfg)
		return
	}
	cfg.Middleware = wrapType(flow.GroupDiff, flow.TypeSnapshot, func(_ flow.Processor, _ context.Context, _ flow.Tx, _ flow.Message) error {
		os.Exit(diedExitCode)
		return nil
	})
	runToEnd(t, cfg)
}

// dyingConfig is the Config of such a process.
func dyingConfig(box pipeline.Sink, dir string, pages ...string) vokter.Config {
	cfg := watchConfig(&site{Server: &httptest.Server{}}, box, dir, "argus")
	cfg.Subscriptions = nil
	for _, page := range pages {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: page, Keywords: []string{"argus"}, Sinks: []string{"box"}})
	}
	return cfg
}

// deadlyReader ends the process when it reads a page about the Styx.
type deadlyReader struct{ pipeline.Reader }

func (deadlyReader) ContentTypes() []string { return []string{"text/html"} }
func (deadlyReader) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	if strings.Contains(string(raw.Body), "Styx") {
		os.Exit(diedExitCode)
	}
	return pipeline.Text{Content: string(raw.Body) + "\n"}, nil
}

// TestAPageThatEndsTheProcessWhenItIsRead: after three processes its check fails with the reason, other pages go on,
// and it is read again once it changed.
func TestAPageThatEndsTheProcessWhenItIsRead(t *testing.T) {
	s, other, m, dir := newSite(t, "<p>Zeus</p>"), newSite(t, "<p>Zeus</p>"), newMailbox(), t.TempDir()
	page := s.URL + "/deadly"
	cfg := dyingConfig(m, dir, page, other.URL+"/")
	cfg.Readers = []pipeline.Reader{deadlyReader{}}
	runToEnd(t, cfg)
	s.set("<p>Styx and Argus</p>")
	for range crashes {
		runUntilItDies(t, dir, page, other.URL+"/")
	}
	other.set("<p>Argus</p>")
	r := runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 || got[0].URL != other.URL+"/" {
		t.Errorf("got %+v, want what changed on the other page", got)
	}
	if got := r.Summary(); got.Failed != 1 {
		t.Errorf("%d checks failed, want 1", got.Failed)
	}
	s.set("<p>Argus</p>")
	runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 || got[0].URL != page {
		t.Errorf("got %+v, want what changed on the page that is read again", got)
	}
}

// TestCrashingMessageBecomesADeadLetter crashes three processes while they compare two versions
// of a page. The fourth moves the snapshot to the dead letters, names the page, and goes on
// with others.
func TestCrashingMessageBecomesADeadLetter(t *testing.T) {
	s, m, dir := newSite(t, "<p>Zeus</p>"), newMailbox(), t.TempDir()
	page, other := s.URL+"/a", s.URL+"/b"
	cfg := dyingConfig(m, dir, page, other)
	runToEnd(t, cfg)
	s.set("<p>Zeus</p><p>Argus</p>")
	cfg.Only = []string{page} // the other one is checked at last
	stop := wrapType(flow.GroupDiff, flow.TypeSnapshot, func(flow.Processor, context.Context, flow.Tx, flow.Message) error {
		return failure.Broken(errors.New("the end"))
	})
	cfg.Middleware = stop
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil { // leaves the snapshot of this page alone
		t.Fatal("it did not stop")
	}
	for range crashes {
		runUntilItDies(t, dir, page, other)
	}
	cfg.Only = nil
	cfg.Middleware = wrapType(flow.GroupDiff, flow.TypeSnapshot, func(next flow.Processor, ctx context.Context, tx flow.Tx, m flow.Message) error {
		if m.Key == page {
			t.Error("a fourth process would die")
		}
		return next.Process(ctx, tx, m)
	})
	r = runToEnd(t, cfg)
	if n := r.Summary().Unhandled; n != 1 {
		t.Errorf("%d messages were given up, want 1", n)
	}
	if got := m.take(); len(got) != 1 || got[0].URL != other {
		t.Errorf("got %+v, want what changed on the other page", got)
	}
	cfg.Middleware, cfg.Checks = nil, 0
	hour := time.Hour
	cfg.Every = &hour
	r, end := startRouter(t, cfg)
	defer end()
	letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{URL: page, Messages: true})
	if err != nil || len(letters) != 1 || !strings.Contains(letters[0].Reason, "the process died 3 times while diff handled this message") {
		t.Fatalf("got %+v, %v", letters, err)
	}
	// Index went on, so the version is stored, and a replay compares it again.
	if n, err := r.Replay(t.Context(), flow.DeadFilter{URL: page}); n != 1 || err != nil {
		t.Fatalf("%d letters were brought back, %v", n, err)
	}
	var got []pipeline.Notification
	waitFor(t, "the change", func() bool { got = append(got, m.take()...); return len(got) > 0 })
	if len(got) != 1 || got[0].URL != page || got[0].Version != 2 {
		t.Errorf("got %+v, want the change of the version that was given up", got)
	}
	waitFor(t, "the letter to go", func() bool {
		letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{URL: page, Messages: true})
		return err == nil && len(letters) == 0
	})
}

// TestTwoCrashesLoseNoMessage: a message that is handled at last is told, and what is known of it
// forgotten.
func TestTwoCrashesLoseNoMessage(t *testing.T) {
	t.Parallel()
	s, m, dir := newSite(t, "<p>Zeus</p>"), newMailbox(), t.TempDir()
	cfg := dyingConfig(m, dir, s.URL+"/a")
	runToEnd(t, cfg)
	s.set("<p>Zeus</p><p>Argus</p>")
	for range crashes - 1 {
		runUntilItDies(t, dir, s.URL+"/a")
	}
	runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v, want the change", got)
	}
	s.set("<p>Zeus</p><p>Argus, and Argus</p>")
	runUntilItDies(t, dir, s.URL+"/a")
	runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v, want the second change", got)
	}
}

// TestSkip: the message that stops a Router is kept, comes again, and can be skipped.
func TestSkip(t *testing.T) {
	s, m, dir := newSite(t, "<p>Zeus</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	runToEnd(t, cfg)
	if s, err := vokter.StoppedBy(dir, ""); s != nil || err != nil {
		t.Fatalf("nothing stopped: got %+v, %v", s, err)
	}
	s.set("<p>Zeus</p><p>Argus</p>")
	newer := wrapType(flow.GroupMatch, flow.TypeChange, func(flow.Processor, context.Context, flow.Tx, flow.Message) error {
		return failure.Broken(errors.New("it is newer"))
	})
	cfg.Middleware = newer
	page := s.URL + "/a"
	for range 2 {
		r, err := vokter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "it is newer; nothing is lost: it is handled again at the next start; vokter-stream skip shows it") {
			t.Fatalf("got %v", err)
		}
	}
	stopped, err := vokter.StoppedBy(dir, "")
	if err != nil || stopped == nil || stopped.Skip || stopped.URL() != page || stopped.Reason != "it is newer" || stopped.Group != flow.GroupMatch ||
		stopped.Type() != flow.TypeChange || stopped.Position != "" || !strings.Contains(string(stopped.Body), "Argus") {
		t.Fatalf("got %+v, %v", stopped, err)
	}
	if err := vokter.SkipStopped(dir, "", stopped); err != nil {
		t.Fatal(err)
	}
	r := runToEnd(t, cfg)
	if n := r.Summary().Unhandled; n != 1 {
		t.Errorf("%d messages were given up, want 1", n)
	}
	if s, err := vokter.StoppedBy(dir, ""); s != nil || err != nil {
		t.Errorf("after it was skipped: got %+v, %v", s, err)
	}
	cfg.Middleware = nil
	s.set("<p>Zeus</p><p>Argus, and Argus</p>")
	runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 || got[0].Version != 3 {
		t.Errorf("got %+v, want the next change alone", got)
	}
}

// TestStoppedAndHandled: a version that can handle the message forgets that another one stopped.
func TestStoppedAndHandled(t *testing.T) {
	s, m, dir := newSite(t, "<p>Zeus</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	runToEnd(t, cfg)
	s.set("<p>Zeus</p><p>Argus</p>")
	cfg.Middleware = wrapType(flow.GroupMatch, flow.TypeChange, func(flow.Processor, context.Context, flow.Tx, flow.Message) error {
		return failure.Broken(errors.New("it is newer"))
	})
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil {
		t.Fatal("it did not stop")
	}
	cfg.Middleware = nil
	runToEnd(t, cfg)
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v, want the change", got)
	}
	if s, err := vokter.StoppedBy(dir, ""); s != nil || err != nil {
		t.Errorf("got %+v, %v", s, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "inflight") }) {
		t.Errorf("after an end in order: %v, %v", entries, err)
	}
}
