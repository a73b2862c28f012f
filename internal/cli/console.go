package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/render"
)

// consoleHandler logs sentences for people, wrapped to the width of the terminal: the time, what
// happened, to which page and why, and the other attributes in parentheses.
type consoleHandler struct {
	w     io.Writer
	level slog.Leveler
	// attrs are the attributes of WithAttrs. prefix, from WithGroup, is put before later keys.
	attrs  []slog.Attr
	prefix string
	// mu guards w and is held while a line is written.
	mu *sync.Mutex
}

var _ slog.Handler = (*consoleHandler)(nil)

func newConsoleHandler(w io.Writer, level slog.Leveler) *consoleHandler {
	return &consoleHandler{w: w, level: level, mu: new(sync.Mutex)}
}

// Enabled reports whether l is logged.
func (c *consoleHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= c.level.Level() }

// WithAttrs returns a handler that adds attrs to every line.
func (c *consoleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	d := *c
	d.attrs = slices.Clip(c.attrs)
	for _, a := range attrs {
		a.Key = c.prefix + a.Key
		d.attrs = append(d.attrs, a)
	}
	return &d
}

// WithGroup returns a handler that puts name before the keys of later attributes.
func (c *consoleHandler) WithGroup(name string) slog.Handler {
	d := *c
	d.prefix += name + "."
	return &d
}

// Attributes that are part of the sentence.
var (
	subjectKeys = []string{"page", "url", "file", "sink"}
	reasonKeys  = []string{"reason", "err", "error"}
)

// Handle writes r.
func (c *consoleHandler) Handle(_ context.Context, r slog.Record) error {
	var about, why, class string
	var facts []string
	note := func(a slog.Attr) {
		value := render.Clean(valueText(a.Value, r.Time))
		switch {
		case value == "":
		case slices.Contains(subjectKeys, a.Key) && about == "":
			about = value
			if a.Key == "sink" {
				about = "sink " + value
			}
		case slices.Contains(reasonKeys, a.Key) && why == "":
			why = value
		case a.Key == "class":
			class = value
		default:
			facts = append(facts, strings.ReplaceAll(a.Key, "_", " ")+" "+value)
		}
	}
	for _, a := range c.attrs {
		note(a)
	}
	r.Attrs(func(a slog.Attr) bool {
		a.Key = c.prefix + a.Key
		note(a)
		return true
	})
	if why == "" { // the class is used only if there is no text
		why = class
	}
	line := r.Time.Format(time.TimeOnly) + "  " + levelText(r.Level)
	for i, part := range []string{render.Clean(r.Message), about, why} {
		if part != "" && i > 0 {
			line += ": "
		}
		line += part
	}
	if len(facts) > 0 {
		line += " (" + strings.Join(facts, ", ") + ")"
	}
	line = render.Wrap(line, terminalColumns(c.w), len("15:04:05  "))
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.w, line+"\n")
	return err
}

func levelText(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error: "
	case l >= slog.LevelWarn:
		return "warning: "
	case l < slog.LevelInfo:
		return "debug: "
	}
	return ""
}

// valueText formats v for people who read it at the time now.
func valueText(v slog.Value, now time.Time) string {
	switch v = v.Resolve(); v.Kind() {
	case slog.KindTime:
		return formatTime(v.Time(), now)
	case slog.KindDuration:
		return formatDuration(v.Duration())
	case slog.KindGroup:
		var parts []string
		for _, a := range v.Group() {
			parts = append(parts, a.Key+" "+valueText(a.Value, now))
		}
		return strings.Join(parts, ", ")
	}
	return v.String()
}

// formatTime formats t for people who read it at the time now: without the date where it is today's,
// without the year where it is this year's.
func formatTime(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.IsZero():
		return "never"
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// timeLayouts are the formats in which a user may write a time. All but the first are in the local
// time zone.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// parseSince returns the time in the past that text, a time or a duration before now, means.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := config.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range timeLayouts {
		t, err := time.ParseInLocation(layout, text, now.Location())
		switch {
		case err != nil:
		case t.After(now):
			return t, fmt.Errorf("%q is in the future", text)
		default:
			return t, nil
		}
	}
	return now, fmt.Errorf("%q is neither a duration such as 24h nor a time such as 2026-01-31 or 2026-01-31T15:04:05Z", text)
}

// formatDuration formats d for people: rounded, and without units that are 0 at the end.
func formatDuration(d time.Duration) string {
	unit := time.Second
	if d < time.Second {
		unit = time.Millisecond
	}
	s := d.Round(unit).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
