package cli

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))

func TestWhen(t *testing.T) {
	for want, at := range map[string]time.Time{
		"never":             {},
		"09:30:01":          time.Date(2026, 3, 1, 8, 30, 1, 0, time.UTC),
		"28 Feb 23:59":      time.Date(2026, 2, 28, 22, 59, 0, 0, time.UTC),
		"31 Dec 2025 12:00": time.Date(2025, 12, 31, 11, 0, 0, 0, time.UTC),
	} {
		if got := when(at, noon); got != want {
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
		var got time.Time
		s := since{&got, func() time.Time { return noon }}
		if err := s.Set(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "24", "-1h", "yesterday", "2026-03-02", "2026-13-01"} {
		var got time.Time
		s := since{&got, func() time.Time { return noon }}
		if err := s.Set(text); err == nil || !got.IsZero() {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
