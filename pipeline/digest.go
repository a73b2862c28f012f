package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Bounds of a Digest.
const (
	MinDigest          = Duration(time.Second)
	MaxDigest          = Duration(31 * 24 * time.Hour)
	DefaultDigestItems = 100
	MaxDigestItems     = 1000
)

// Digest says for how long the notifications of a subscription are collected, for each of its
// receivers, to be told as one. Either Every or Cron is set.
type Digest struct {
	// Every is how long is collected, from the first notification on, MinDigest to MaxDigest.
	Every Duration `json:"every,omitempty"`
	// Cron says when is told what was collected by then: minute, hour, day of the month, month
	// and day of the week, then the name of a time zone, UTC where there is none, such as
	// "0 9 * * 1-5 Europe/Berlin". What waited for MaxDigest is told before that.
	Cron string `json:"cron,omitempty"`
	// Max is how many notifications are collected at most, up to MaxDigestItems; what is full
	// is told at once. 0 means DefaultDigestItems.
	Max int `json:"max,omitempty"`
}

// ParseDigest reads a Digest without Max: a duration such as 1h, or a line as in Digest.Cron.
// Validate says whether it can be used.
func ParseDigest(s string) (Digest, error) {
	fields := strings.Fields(s)
	if len(fields) > 1 {
		return Digest{Cron: strings.Join(fields, " ")}, nil
	}
	every, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || every <= 0 {
		return Digest{}, fmt.Errorf(`%q is neither a duration such as 30m or 24h nor a cron line with a time zone such as "0 9 * * 1-5 Europe/Berlin"`, s)
	}
	return Digest{Every: Duration(every)}, nil
}

// String returns d in words, such as "every 1h0m0s" or "at 0 9 * * 1-5 Europe/Berlin".
func (d Digest) String() string {
	if d.Cron != "" {
		return "at " + d.Cron
	}
	return "every " + d.Every.String()
}

// Items returns how many notifications are collected at most.
func (d Digest) Items() int {
	if d.Max <= 0 {
		return DefaultDigestItems
	}
	return min(d.Max, MaxDigestItems)
}

// Validate returns why d cannot be used, or nil.
func (d Digest) Validate() error {
	switch {
	case d.Every != 0 && d.Cron != "":
		return errors.New("name a duration or a cron line, not both")
	case d.Cron == "" && (d.Every < MinDigest || d.Every > MaxDigest):
		return fmt.Errorf("%v is not between %v and %v", d.Every, MinDigest, MaxDigest)
	case d.Max < 0 || d.Max > MaxDigestItems:
		return fmt.Errorf("max: %d is not between 1 and %d", d.Max, MaxDigestItems)
	case d.Cron == "":
		return nil
	}
	s, err := parseCron(d.Cron)
	if err == nil && s.Next(time.Unix(0, 0)).IsZero() {
		err = errors.New("there is no such day")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", d.Cron, err)
	}
	return nil
}

// End returns when what is collected from start on is told. It is start itself where d cannot be
// used, as where this machine does not know the time zone.
func (d Digest) End(start time.Time) time.Time {
	latest := start.Add(time.Duration(min(max(d.Every, 0), MaxDigest)))
	if d.Cron == "" {
		return latest
	}
	s, err := parseCron(d.Cron)
	if err != nil {
		return start
	}
	latest = start.Add(time.Duration(MaxDigest))
	if next := s.Next(start).UTC(); next.After(start) && next.Before(latest) {
		return next
	}
	return latest
}

var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseCron reads a line as in Digest.Cron.
func parseCron(line string) (cron.Schedule, error) {
	fields := strings.Fields(line)
	zone := "UTC"
	switch {
	case len(fields) == 6:
		zone = fields[5]
	case len(fields) != 5:
		return nil, fmt.Errorf("it has %d fields; a cron line has minute, hour, day of the month, month and day of the week, and perhaps a time zone", len(fields))
	}
	if strings.Contains(fields[0], "=") {
		return nil, errors.New("the time zone stands last, by its name only, such as Europe/Berlin")
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return nil, fmt.Errorf("%q is no time zone that is known here; write one such as Europe/Berlin", zone)
	}
	return cronParser.Parse("CRON_TZ=" + zone + " " + strings.Join(fields[:5], " "))
}
