package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestSkip: the message that stopped a process is shown, and skipped where that is confirmed.
func TestSkip(t *testing.T) {
	p, data := newPage(t, "<p>Zeus</p>"), filepath.Join(t.TempDir(), "d")
	if r := vs(t, "watch", p.URL, "Argus", "--allow", loopback, "--checks", "1", "--every", "0s", "--data", data); r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	expect(t, 1, "there is nothing to skip: no message stopped a process", "skip", "--data", data)
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
	if shown := objects(t, vs(t, "skip", "--data", data, "--format", "json"))["stopped"]; len(shown) != 1 {
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
	expect(t, 0, "it is skipped", "skip", "--data", data, "--yes")
	if err := os.WriteFile(filepath.Join(data, "stopped.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, 1, "stopped.json is damaged", "skip", "--data", data)
}
