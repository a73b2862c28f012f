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
	log := slog.New(newConsole(&out, slog.LevelInfo))
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
		if r := vs(t, append(args, "--log-format", format)...); r.code != 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: got %+v, want %q", format, r, want)
		}
	}
}

func TestHowLong(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Minute: "10m", 72 * time.Hour: "72h", 90 * time.Second: "1m30s", time.Hour + time.Second: "1h0m1s",
		1234567 * time.Microsecond: "1s", 1234567 * time.Nanosecond: "1ms",
	} {
		if got := howLong(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}
