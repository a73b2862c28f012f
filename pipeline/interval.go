package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Interval says how often a page is checked: every so often (Every), at certain times (Cron), or
// between Every and Max by how often the page changes. The zero Interval stands for DefaultInterval.
type Interval struct {
	// Every is the time between two checks. With Max it is the shortest.
	Every Duration
	// Max is the longest time between two checks, for a page that seldom changes. 0 means that the
	// time is always Every.
	Max Duration
	// Cron says when the page is checked, within the minute that it names. Every and Max are 0 then.
	Cron Cron
}

// Never is the interval of a subscription that causes no checks.
var Never = Interval{Every: -1}

// Every returns the Interval of one check every d.
func Every(d time.Duration) Interval { return Interval{Every: Duration(d)} }

// ParseInterval reads what String returns: a duration such as "10m", two such as "10m to 24h", a line
// as in Cron, or "never".
func ParseInterval(s string) (Interval, error) {
	fields := strings.Fields(s)
	if len(fields) >= 5 {
		i := Interval{Cron: Cron(strings.Join(fields, " "))}
		return i, i.Cron.Validate()
	}
	if len(fields) == 1 && fields[0] == "never" {
		return Never, nil
	}
	var i Interval
	var err error
	switch {
	case len(fields) == 1:
		err = i.Every.UnmarshalText([]byte(fields[0]))
	case len(fields) == 3 && fields[1] == "to":
		if err = i.Every.UnmarshalText([]byte(fields[0])); err == nil {
			err = i.Max.UnmarshalText([]byte(fields[2]))
		}
		if err == nil && (i.Every <= 0 || i.Max <= i.Every) {
			err = errors.New("the first duration is more than 0, and the second is longer")
		}
	default:
		err = errors.New("it is neither")
	}
	if err != nil {
		return Interval{}, fmt.Errorf(`%q is not an interval; write a duration such as 10m, two such as "10m to 24h", a cron line with a time zone such as "0 9 * * 1-5 Europe/Berlin", or never`, s)
	}
	return i, nil
}

// String returns i as text, such as "10m0s", "10m0s to 24h0m0s", "0 9 * * 1-5 Europe/Berlin" or
// "never".
func (i Interval) String() string {
	switch {
	case i.Cron != "":
		return string(i.Cron)
	case i == Never:
		return "never"
	case i.Max > 0:
		return i.Every.String() + " to " + i.Max.String()
	}
	return i.Every.String()
}

// IsZero reports whether i is the zero Interval.
func (i Interval) IsZero() bool { return i == Interval{} }

// MarshalText returns i as String does.
func (i Interval) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what String returns.
func (i *Interval) UnmarshalText(b []byte) error {
	parsed, err := ParseInterval(string(b))
	if err == nil {
		*i = parsed
	}
	return err
}

// Validate returns why i cannot be used, or nil.
func (i Interval) Validate() error {
	switch {
	case i == Never:
		return nil
	case i.Cron != "" && (i.Every != 0 || i.Max != 0):
		return errors.New("name a duration or a cron line, not both")
	case i.Cron != "":
		return i.Cron.Validate()
	case i.Every < 0 || i.Max < 0:
		return fmt.Errorf("%v is negative; write a duration such as 10m, or never", i)
	case i.Max > 0 && (i.Every == 0 || i.Max <= i.Every):
		return fmt.Errorf("%v: the first duration is more than 0, and the second is longer", i)
	}
	return nil
}
