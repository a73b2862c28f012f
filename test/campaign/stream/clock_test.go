package main

import (
	"testing"
	"time"
)

func TestSetting(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	for _, c := range []struct {
		text  string
		after time.Duration
		want  time.Duration
	}{
		{"-2h\n", time.Minute, time.Minute - 2*time.Hour},
		{"1h -2h 1700000060000", 59 * time.Second, 59*time.Second + time.Hour},
		{"1h -2h 1700000060000", time.Minute, time.Minute - 2*time.Hour},
		{"0s 144 1700000000000", 10 * time.Minute, 24 * time.Hour},
		{"1h 144 1700000000000", time.Second, time.Hour + 144*time.Second},
		{"0s 144 1700000000000", -time.Second, -time.Second},
	} {
		s, err := parseSetting(c.text)
		if err != nil {
			t.Errorf("parseSetting(%q): %v", c.text, err)
			continue
		}
		if got := s.at(start.Add(c.after)).Sub(start); got != c.want {
			t.Errorf("%q: after %v the clock shows %v, want %v", c.text, c.after, got, c.want)
		}
	}
	for _, text := range []string{"", "fast", "0s 144", "0s 0 1700000000000", "0s x 1", "0s 2 now", "0s 2h now"} {
		if s, err := parseSetting(text); err == nil {
			t.Errorf("parseSetting(%q) = %+v, want an error", text, s)
		}
	}
}
