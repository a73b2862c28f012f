package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Cron is a line with five fields: minute, hour, day of the month, month and day of the week. Then
// follows the name of a time zone, such as "0 9 * * 1-5 Europe/Berlin"; without one it is UTC. Where
// neither the day of the month nor that of the week begins with *, one of them suffices.
//
// Where the hour is given, a line names a time of day. On the day on which a zone skips an hour, a
// time within it is that much later: 02:30 is 03:30. On the day on which a zone repeats an hour, a
// time within it is the first one. A line whose hour begins with * goes on through both, every hour.
type Cron string

// parsedCrons caches parsed lines, because reading a time zone is slow.
var parsedCrons = struct {
	sync.Mutex
	parsed map[Cron]cronLine
}{parsed: make(map[Cron]cronLine)}

// maxSetBack is longer than the clock of any zone is ever set back.
const maxSetBack = 3 * time.Hour

// maxParsedCrons is how many parsed lines are kept.
const maxParsedCrons = 1000

// cronLine is a parsed Cron.
type cronLine struct {
	schedule cron.Schedule
	// zone is nil if schedule knows it. Otherwise schedule takes and returns times of day, as if
	// they were in UTC.
	zone *time.Location
}

const cronFields = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow

// cronParser reads days as crontab(5) does: where both the day of the month and the day of the week are
// given, one of them suffices. starredCronParser is for a line with a day that begins with *, also one with
// a step: both are necessary.
var (
	cronParser        = cron.MustNewParser(cronFields | cron.DowOrDom)
	starredCronParser = cron.MustNewParser(cronFields)
)

func (c Cron) parse() (cronLine, error) {
	parsedCrons.Lock()
	defer parsedCrons.Unlock()
	if l, ok := parsedCrons.parsed[c]; ok {
		return l, nil
	}
	fields := strings.Fields(string(c))
	zone := "UTC"
	switch {
	case len(fields) == 6:
		zone = fields[5]
	case len(fields) != 5:
		return cronLine{}, fmt.Errorf("it has %d fields; a cron line has minute, hour, day of the month, month and day of the week, and perhaps a time zone", len(fields))
	}
	if strings.Contains(fields[0], "=") {
		return cronLine{}, errors.New("the time zone stands last, by its name only, such as Europe/Berlin")
	}
	location, err := loadZone(zone)
	if err != nil {
		return cronLine{}, err
	}
	l := cronLine{zone: location}
	if strings.HasPrefix(fields[1], "*") {
		l.zone = nil
	} else {
		zone = "UTC"
	}
	parser := cronParser
	if strings.HasPrefix(fields[2], "*") || strings.HasPrefix(fields[4], "*") {
		parser = starredCronParser
	}
	if l.schedule, err = parser.Parse("CRON_TZ=" + zone + " " + strings.Join(fields[:5], " ")); err != nil {
		return cronLine{}, cronFieldError(fields[:5], err)
	}
	if l.schedule.Next(time.Unix(0, 0)).IsZero() {
		return cronLine{}, errors.New("there is no such day")
	}
	if len(parsedCrons.parsed) >= maxParsedCrons {
		clear(parsedCrons.parsed)
	}
	parsedCrons.parsed[c] = l
	return l, nil
}

// cronFieldError returns an error about the first field that cannot be used, or err.
func cronFieldError(fields []string, err error) error {
	for i, what := range []string{
		"minute (0 to 59)", "hour (0 to 23)", "day of the month (1 to 31)", "month (1 to 12, or jan to dec)", "day of the week (0 to 7, or sun to sat)",
	} {
		line := []string{"*", "*", "*", "*", "*"}
		line[i] = fields[i]
		if _, err := cronParser.Parse(strings.Join(line, " ")); err != nil {
			return fmt.Errorf("%q is no %s, and no list, range or step of them", fields[i], what)
		}
	}
	return err
}

// Validate returns why c cannot be used, or nil.
func (c Cron) Validate() error {
	if _, err := c.parse(); err != nil {
		return fmt.Errorf("%q: %w", string(c), err)
	}
	return nil
}

// Next returns the first time of c after a time, in UTC. It is the zero time where c is invalid, for
// example because this machine does not know its time zone.
func (c Cron) Next(after time.Time) time.Time {
	l, err := c.parse()
	if err != nil {
		return time.Time{}
	}
	if l.zone == nil {
		return l.schedule.Next(after).UTC()
	}
	// Where an hour is repeated, a later instant can have an earlier time of day.
	for day := localTimeAsUTC(after.In(l.zone)).Add(-maxSetBack); ; {
		if day = l.schedule.Next(day); day.IsZero() {
			return day
		}
		if t := localTimeInZone(day, l.zone); t.After(after) {
			return t
		}
	}
}

// zoneCache holds the time zones that were read, by name.
var zoneCache sync.Map

// loadZone returns the time zone with that name.
func loadZone(name string) (*time.Location, error) {
	if zone, ok := zoneCache.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err == nil && name != "Local" {
		zoneCache.Store(name, zone)
		return zone, nil
	}
	return nil, fmt.Errorf("%q is no time zone that is known here; write one such as Europe/Berlin", name)
}

// localTimeAsUTC returns the date and time of day that t has in its zone, as a time in UTC.
func localTimeAsUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// localTimeInZone is the inverse of localTimeAsUTC: it returns when a clock in zone shows the date and time of clock.
// Where the zone repeats that time, it is the first one. Where the zone skips it, it is later by what is skipped.
func localTimeInZone(clock time.Time, zone *time.Location) time.Time {
	offset := func(t time.Time) time.Duration {
		_, o := t.In(zone).Zone()
		return time.Duration(o) * time.Second
	}
	before, after := offset(clock.Add(-24*time.Hour)), offset(clock.Add(24*time.Hour))
	if t := clock.Add(-before); offset(t) == before {
		return t.UTC()
	}
	if t := clock.Add(-after); offset(t) == after {
		return t.UTC()
	}
	return clock.Add(-before).UTC()
}

// maxGapSamples is how many times of a line Gap compares.
const maxGapSamples = 200

// Gap returns the least time between two of the next times of c. It is 0 where c is empty or invalid.
func (c Cron) Gap() Duration {
	if c == "" {
		return 0
	}
	least := time.Duration(0)
	for i, at := 0, c.Next(time.Now()); i < maxGapSamples && !at.IsZero(); i++ {
		next := c.Next(at)
		if gap := next.Sub(at); !next.IsZero() && (least == 0 || gap < least) {
			least = gap
		}
		at = next
	}
	return Duration(least)
}
