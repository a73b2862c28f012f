package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

func TestDemoJSON(t *testing.T) {
	r := runCLI(t, "demo", "--changes", "3", "--format", "json")
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
	r := runCLI(t, "demo", "--changes", "2", "--format", "text")
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
	r := runCLI(t, "demo", "--changes", fmt.Sprint(n), "--format", "json")
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
	a := &app{demoInterval: time.Millisecond}
	s := startApp(t, a, "demo")
	if code := <-s.ended; code != 0 || strings.Count(s.out.String(), "You get:\n") != len(scenes)-1 {
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
