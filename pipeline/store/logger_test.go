package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRepeatedErrors: what Pebble says hundreds of times a second is logged every ten.
func TestRepeatedErrors(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), "/d", nil)
	now := time.Now()
	l.now = func() time.Time { return now }
	for i := range 10_000 { // 20 s
		l.Errorf("background error: write %06d.sst: no space left", i)
		now = now.Add(2 * time.Millisecond)
	}
	l.Errorf("something else")
	l.Errorf("background error: write %06d.sst: no space left", 1)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"000000.sst", "repeated=4999", "something else", "repeated=4999"} {
		if len(lines) != 4 || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d has no %q:\n%s", i, want, out.String())
		}
	}
	if strings.Contains(lines[0], "repeated") {
		t.Errorf("the first one did not come before: %s", lines[0])
	}
	for i := range 2 * maxRepeated {
		l.Errorf("error %s", strings.Repeat("x", i))
	}
	if len(l.seen) > maxRepeated {
		t.Errorf("%d errors are remembered", len(l.seen))
	}
}
