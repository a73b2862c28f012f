package pipeline

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Quiet are the hours of each day in which a client is not notified. The zero Quiet has none.
type Quiet struct {
	// From and To are minutes of the day: 22:00 is 1320. Where To is less than From, the hours end
	// on the next day.
	From, To int
	// Zone is the name of the time zone, such as Europe/Berlin. Empty means UTC.
	Zone string
}

// ParseQuiet reads what String returns, such as "22:00-07:00 Europe/Berlin".
func ParseQuiet(s string) (Quiet, error) {
	hours, zone, _ := strings.Cut(strings.TrimSpace(s), " ")
	from, to, _ := strings.Cut(hours, "-")
	start, err := time.Parse("15:04", from)
	end, err2 := time.Parse("15:04", to)
	if err != nil || err2 != nil {
		return Quiet{}, fmt.Errorf(`%q is not what quiet hours look like; write such as "22:00-07:00 Europe/Berlin"`, s)
	}
	q := Quiet{From: start.Hour()*60 + start.Minute(), To: end.Hour()*60 + end.Minute(), Zone: strings.TrimSpace(zone)}
	return q, q.Validate()
}

// String returns q as text, such as "22:00-07:00 Europe/Berlin".
func (q Quiet) String() string {
	s := fmt.Sprintf("%02d:%02d-%02d:%02d", q.From/60, q.From%60, q.To/60, q.To%60)
	if q.Zone != "" {
		s += " " + q.Zone
	}
	return s
}

// IsZero reports whether q has no hours.
func (q Quiet) IsZero() bool { return q == Quiet{} }

// MarshalText returns q as String does.
func (q Quiet) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads what String returns.
func (q *Quiet) UnmarshalText(b []byte) error {
	parsed, err := ParseQuiet(string(b))
	if err == nil {
		*q = parsed
	}
	return err
}

// Validate returns why q cannot be used, or nil.
func (q Quiet) Validate() error {
	const day = 24 * 60
	if q.IsZero() {
		return nil
	}
	if q.From == q.To || q.From < 0 || q.To < 0 || q.From >= day || q.To >= day {
		return fmt.Errorf("%v: the hours begin and end at different times of the day", q)
	}
	_, err := loadZone(cmp.Or(q.Zone, "UTC"))
	return err
}

// End returns when the quiet hours end that t is in. It is t where t is in none, or where this machine
// does not know the time zone.
func (q Quiet) End(t time.Time) time.Time {
	if q.IsZero() {
		return t
	}
	zone, err := loadZone(cmp.Or(q.Zone, "UTC"))
	if err != nil {
		return t
	}
	clock := localTimeAsUTC(t.In(zone))
	now := clock.Hour()*60 + clock.Minute()
	within, tomorrow := q.From <= now && now < q.To, false
	if q.From > q.To {
		within, tomorrow = now >= q.From || now < q.To, now >= q.From
	}
	if !within {
		return t
	}
	end := clock.Truncate(24 * time.Hour).Add(time.Duration(q.To) * time.Minute)
	if tomorrow {
		end = end.Add(24 * time.Hour)
	}
	at := localTimeInZone(end, zone)
	if !at.After(t) { // the clock goes through these hours a second time
		return t.Add(end.Sub(clock))
	}
	return at
}
