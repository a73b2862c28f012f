package pipeline

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a time.Duration whose JSON is text as time.ParseDuration reads it, such as "10m0s",
// or "never" for Never.
type Duration time.Duration

// Never is the interval of what is not fetched at all, since its pages are pushed.
const Never Duration = -1

// String returns d as text, such as "10m0s" or "never".
func (d Duration) String() string {
	if d == Never {
		return "never"
	}
	return time.Duration(d).String()
}

// MarshalText returns d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String returns.
func (d *Duration) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	if s == "never" {
		*d = Never
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write one such as 30s, 10m or 24h, or never for an interval without checks", s)
	}
	*d = Duration(v)
	return nil
}
