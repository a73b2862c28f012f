package cli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestConsole(t *testing.T) {
	var out strings.Builder
	log := slog.New(newConsoleHandler(&out, slog.LevelInfo))
	log.Debug("nobody reads this")
	log.Info("running", "subscriptions", 2, "data", "memory")
	log.Warn("check failed", "page", "https://example.com/", "class", "status", "reason", "HTTP status 404 Not Found")
	log.With("sink", "ops").WithGroup("try").Error("a delivery failed", "err", errors.New("answered\x1b[1m 500"), "next", 90*time.Minute)
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		at, text, _ := strings.Cut(line, "  ")
		if _, err := time.Parse(time.TimeOnly, at); err != nil {
			t.Error(err)
		}
		got.WriteString(text)
	}
	want := `running (subscriptions 2, data memory)
warning: check failed: https://example.com/: HTTP status 404 Not Found
error: a delivery failed: sink ops (try.err answered[1m 500, try.next 1h30m)
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestLogFormat(t *testing.T) {
	p := newPage(t, "<p>one</p>")
	args := []string{"watch", "--allow", loopback, "--every", "0s", "--checks", "2", "--log-level", "info", p.URL, "one"}
	for format, want := range map[string]string{"": "level=INFO msg=running", "logfmt": "level=INFO msg=running", "json": `"msg":"running"`, "text": "  running ("} {
		if r := runCLI(t, append(args, "--log-format", format)...); r.code != 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: got %+v, want %q", format, r, want)
		}
	}
}

func TestHowLong(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Minute: "10m", 72 * time.Hour: "72h", 90 * time.Second: "1m30s", time.Hour + time.Second: "1h0m1s",
		1234567 * time.Microsecond: "1s", 1234567 * time.Nanosecond: "1ms",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))

func TestWhen(t *testing.T) {
	for want, at := range map[string]time.Time{
		"never":             {},
		"09:30:01":          time.Date(2026, 3, 1, 8, 30, 1, 0, time.UTC),
		"28 Feb 23:59":      time.Date(2026, 2, 28, 22, 59, 0, 0, time.UTC),
		"31 Dec 2025 12:00": time.Date(2025, 12, 31, 11, 0, 0, 0, time.UTC),
	} {
		if got := formatTime(at, noon); got != want {
			t.Errorf("when(%v) = %q, want %q", at, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	for text, want := range map[string]time.Time{
		"24h":                  noon.Add(-24 * time.Hour),
		"2026-02-01":           time.Date(2026, 2, 1, 0, 0, 0, 0, noon.Location()),
		"2026-02-01 08:00":     time.Date(2026, 2, 1, 8, 0, 0, 0, noon.Location()),
		"2026-02-01T08:00:01":  time.Date(2026, 2, 1, 8, 0, 1, 0, noon.Location()),
		"2026-02-01T08:00:01Z": time.Date(2026, 2, 1, 8, 0, 1, 0, time.UTC),
	} {
		if got, err := parseSince(text, noon); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "24", "-1h", "yesterday", "2026-03-02", "2026-13-01"} {
		if got, err := parseSince(text, noon); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
