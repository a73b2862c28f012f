package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
)

// when is t as people say it at the time now: without what both have in common.
func when(t, now time.Time) string {
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

// layouts are those of times that a user may write, in the local time zone but for the first.
var layouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// since is a flag of a time in the past, written as that or as how long ago it was.
type since struct {
	value *time.Time
	now   func() time.Time
}

func (s *since) Type() string   { return "TIME" }
func (s *since) String() string { return "" }
func (s *since) Set(text string) error {
	now := s.now()
	if d, err := config.ParseDuration(text); err == nil {
		*s.value = now.Add(-d)
		return nil
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, text, now.Location())
		switch {
		case err != nil:
		case t.After(now):
			return fmt.Errorf("%q is in the future", text)
		default:
			*s.value = t
			return nil
		}
	}
	return fmt.Errorf("%q is neither a duration such as 24h nor a time such as 2026-01-31 or 2026-01-31T15:04:05Z", text)
}

// howLong is d as people write it: rounded, without what is 0 at its end.
func howLong(d time.Duration) string {
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
