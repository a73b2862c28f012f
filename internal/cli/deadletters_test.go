package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestUnhandledMessagesAreShown: they cannot be replayed, and are listed all the same.
func TestUnhandledMessagesAreShown(t *testing.T) {
	s := newTestSetup(t, "")
	bad := pipeline.Pushed{URL: s.page.URL, ContentType: "application/x-none", Body: []byte("x")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := vokter.New(vokter.Config{Dir: s.data, Sources: map[string]pipeline.Source{
		"crawler": pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
			defer cancel()
			return emit(ctx, bad)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil || r.Summary().Unhandled != 1 {
		t.Fatalf("got %+v, %v, want a message that could not be handled", r.Summary(), err)
	}
	expectExit(t, 0, "1 message could not be handled, and cannot be replayed", "replay", "-c", s.config, "--dry-run")
	expectExit(t, 0, s.page.URL, "replay", "-c", s.config, "--dry-run", "--url", s.page.URL)
	expectExit(t, 1, "no such dead letter", "replay", "-c", s.config, "--dry-run", "--sink", "out")
	found := objects(t, runCLI(t, "replay", "-c", s.config, "--dry-run", "--format", "json"))
	if len(found["unhandled"]) != 1 || len(found["dead_letter"]) != 0 {
		t.Errorf("got %v", found)
	}
}

// TestWhatBecomesOfAReplay: what becomes of notifications that were not replayed is no failure of it.
func TestWhatBecomesOfAReplay(t *testing.T) {
	letter := func(sink, id string) flow.DeadLetter {
		return flow.DeadLetter{Addressed: &flow.Addressed{Receiver: pipeline.Receiver{Sink: sink}, Notification: pipeline.Notification{ID: id}}}
	}
	a := make(replayedIDs)
	a.add([]flow.DeadLetter{letter("hook", "1"), letter("hook", "2"), letter("mail", "3")})
	if n := a.remove([]flow.DeadLetter{letter("hook", "1"), letter("hook", "late"), letter("chat", "2")}); n != 1 {
		t.Errorf("%d were given up again, want 1", n)
	}
	n, why := a.pending([]inspect.Receiver{{Sink: "hook", Pending: 7, Reason: "503"}, {Sink: "mail"}, {Sink: "chat", Pending: 1}})
	if n != 1 || len(why) != 1 {
		t.Errorf("%d wait, for %q, want 1", n, why)
	}
}

// TestSkip: the message that stopped a process is shown, and skipped where that is confirmed.
func TestSkip(t *testing.T) {
	p, data := newPage(t, "<p>Zeus</p>"), filepath.Join(t.TempDir(), "d")
	if r := runCLI(t, "watch", p.URL, "Argus", "--allow", loopback, "--checks", "1", "--every", "0s", "--data", data); r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	expectExit(t, 1, "there is nothing to skip: no message stopped a process", "skip", "--data", data)
	b, err := json.Marshal(vokter.Stopped{Position: "S/snapshots/0/1", DeadLetter: flow.DeadLetter{
		Reason: "it is newer", Group: "diff", Topic: "snapshots", Headers: map[string]string{"ce_subject": p.URL, "ce_type": "vokter.snapshot.v9"},
		Body: []byte("a\x1b[2Jb"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "stopped.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	answered := func(answer string) result {
		var out, stderr buffer
		a := &app{stdin: strings.NewReader(answer), stdout: &out, stderr: &stderr}
		code := a.run(t.Context(), []string{"skip", "--data", data})
		return result{code, out.String(), stderr.String()}
	}
	for _, answer := range []string{"", "n\n", "what?\n"} {
		r := answered(answer)
		if r.code != 1 || !strings.Contains(r.stderr, "nothing was skipped; answer y, or write --yes") {
			t.Errorf("answer %q: got %+v", answer, r)
		}
		for _, want := range []string{"diff stopped over this message", "it is newer", p.URL, "vokter.snapshot.v9", "S/snapshots/0/1", "a[2Jb (6 bytes)"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%q is not shown in %s", want, r.stdout)
			}
		}
	}
	if shown := objects(t, runCLI(t, "skip", "--data", data, "--format", "json"))["stopped"]; len(shown) != 1 {
		t.Errorf("got %v", shown)
	}
	if s, err := vokter.StoppedBy(data, ""); err != nil || s == nil || s.Skip {
		t.Errorf("it is skipped without an answer: %+v, %v", s, err)
	}
	if r := answered("y\n"); r.code != 0 || !strings.Contains(r.stdout, "the next start of the pipeline moves it to the dead letters") {
		t.Errorf("got %+v", r)
	}
	if s, err := vokter.StoppedBy(data, ""); err != nil || s == nil || !s.Skip {
		t.Errorf("got %+v, %v", s, err)
	}
	expectExit(t, 0, "skipped: the next start", "skip", "--data", data, "--yes")
	if err := os.WriteFile(filepath.Join(data, "stopped.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectExit(t, 1, "stopped.json is damaged", "skip", "--data", data)
}
