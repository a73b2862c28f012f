package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func parseTime(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestCronOverDaylightSaving: a time of day comes once a day, also on the days on which the clock is
// changed, and * as hour means every hour that passes.
func TestCronOverDaylightSaving(t *testing.T) {
	for _, c := range []struct {
		line  Cron
		after string
		want  string
	}{
		// In Berlin, 02:00 to 03:00 is missing on 29 March and comes twice on 25 October.
		{"30 2 * * * Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-28T01:30:00Z 2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-10-23T12:00:00Z", "2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"*/30 2 * * * Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:00:00Z"},
		{"*/30 2 * * * Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z 2026-10-25T00:30:00Z 2026-10-26T01:00:00Z"},
		{"0 9 * * 1-5 Europe/Berlin", "2026-03-26T12:00:00Z", "2026-03-27T08:00:00Z 2026-03-30T07:00:00Z 2026-03-31T07:00:00Z"},
		{"0 * * * * Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T02:00:00Z 2026-03-29T03:00:00Z"},
		{"0 * * * * Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"},
		// Between the two 02:30, and at the second of them.
		{"45 2 * * * Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-26T01:45:00Z"},
		{"15 3 * * * Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02:15:00Z"},
		{"30 1 * * * America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"30 2 * * * America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:30:00Z 2026-03-09T06:30:00Z"},
		// In Cairo, midnight itself is missing on 24 April.
		{"0 0 * * * Africa/Cairo", "2026-04-22T12:00:00Z", "2026-04-22T22:00:00Z 2026-04-23T22:00:00Z 2026-04-24T21:00:00Z"},
		// By half an hour.
		{"45 1 * * * Australia/Lord_Howe", "2026-04-03T20:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"0 9 * * *", "2026-03-28T12:00:00Z", "2026-03-29T09:00:00Z 2026-03-30T09:00:00Z"},
	} {
		at := parseTime(t, c.after)
		var got []string
		for range strings.Fields(c.want) {
			at = c.line.Next(at)
			got = append(got, at.Format(time.RFC3339))
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s after %s:\n got %v\nwant %s", c.line, c.after, got, c.want)
		}
	}
}

func TestCronGap(t *testing.T) {
	for line, want := range map[Cron]time.Duration{"": 0, "* * * * *": time.Minute, "0 9,11 * * * Europe/Berlin": 2 * time.Hour, "a b": 0} {
		if got := line.Gap(); time.Duration(got) != want {
			t.Errorf("%q: %v, want %v", string(line), got, want)
		}
	}
}

// TestIntervals: what ParseInterval reads is what String returns, in JSON too.
func TestIntervals(t *testing.T) {
	for text, want := range map[string]Interval{
		"10m": Every(10 * time.Minute), "never": Never, "10m to 24h": {Every: Duration(10 * time.Minute), Max: Duration(24 * time.Hour)},
		"0  9 * * 1-5 Europe/Berlin": {Cron: "0 9 * * 1-5 Europe/Berlin"}, "0 9 * * 1-5": {Cron: "0 9 * * 1-5"},
	} {
		got, err := ParseInterval(text)
		if err != nil || got != want || got.Validate() != nil {
			t.Errorf("%q is %+v, %v", text, got, err)
			continue
		}
		b, err := json.Marshal(Subscription{Interval: got})
		if err != nil {
			t.Fatal(err)
		}
		var s Subscription
		if err := json.Unmarshal(b, &s); err != nil || s.Interval != want {
			t.Errorf("%q is %+v through JSON, %v", text, s.Interval, err)
		}
	}
	for _, text := range []string{"", "ten minutes", "24h to 10m", "0s to 10m", "10m to", "10m - 24h", "61 9 * * *", "0 9 * * * Mars/Here", "0 0 30 2 *", "-5m"} {
		if got, err := ParseInterval(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
	for _, i := range []Interval{{Every: -2}, {Max: 5}, {Every: 5, Max: 5}, {Every: 5, Cron: "0 9 * * *"}, {Cron: "x"}} {
		if i.Validate() == nil {
			t.Errorf("%+v is valid", i)
		}
	}
}

// TestQuiet: the end of the quiet hours, on ordinary days and when the clock is changed.
func TestQuiet(t *testing.T) {
	for _, c := range []struct{ quiet, at, want string }{
		{"22:00-07:00 Europe/Berlin", "2026-06-01T19:59:59Z", "2026-06-01T19:59:59Z"},
		{"22:00-07:00 Europe/Berlin", "2026-06-01T20:00:00Z", "2026-06-02T05:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-06-02T01:00:00Z", "2026-06-02T05:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-06-02T05:00:00Z", "2026-06-02T05:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // one hour less
		{"22:00-07:00 Europe/Berlin", "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"}, // one hour more
		{"12:00-13:00", "2026-06-01T12:30:00Z", "2026-06-01T13:00:00Z"},
		{"12:00-13:00", "2026-06-01T13:00:00Z", "2026-06-01T13:00:00Z"},
		{"01:00-02:30 Europe/Berlin", "2026-10-25T00:20:00Z", "2026-10-25T00:30:00Z"},
		{"01:00-02:30 Europe/Berlin", "2026-10-25T01:20:00Z", "2026-10-25T01:30:00Z"}, // 02:20 for the second time
		{"00:00-06:00", "2026-06-01T00:00:00Z", "2026-06-01T06:00:00Z"},
	} {
		q, err := ParseQuiet(c.quiet)
		if err != nil || q.String() != c.quiet {
			t.Errorf("%s is %s, %v", c.quiet, q, err)
		}
		if got := q.End(parseTime(t, c.at)); !got.Equal(parseTime(t, c.want)) {
			t.Errorf("%s at %s: until %s, want %s", c.quiet, c.at, got.Format(time.RFC3339), c.want)
		}
	}
	for _, text := range []string{"", "22:00", "22-7", "22:00-22:00", "22:00-25:00", "22:00-07:00 Mars/Here", "22:00-07:00 Local"} {
		if q, err := ParseQuiet(text); err == nil {
			t.Errorf("%q is %v, want an error", text, q)
		}
	}
	at := parseTime(t, "2026-06-01T20:00:00Z")
	if got := (Quiet{}).End(at); !got.Equal(at) {
		t.Errorf("no quiet hours end at %v", got)
	}
}

// TestCollected: quiet hours collect notifications, and put off digests that would end in them.
func TestCollected(t *testing.T) {
	q, err := ParseQuiet("22:00-07:00 Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	day, night, morning := parseTime(t, "2026-06-01T12:00:00Z"), parseTime(t, "2026-06-01T22:00:00Z"), parseTime(t, "2026-06-02T05:00:00Z")
	if d := (Subscription{}).Collected(); d != nil {
		t.Errorf("without quiet hours: %v", d)
	}
	quiet := Subscription{Quiet: q}.Collected()
	if quiet.Collects(day) || !quiet.Collects(night) || !quiet.End(night).Equal(morning) || quiet.Items() != maxDigestItems {
		t.Errorf("%+v from %v ends at %v", quiet, night, quiet.End(night))
	}
	both := Subscription{Quiet: q, Digest: &Digest{Every: Duration(10 * time.Hour)}}.Collected()
	if !both.Collects(day) || !both.End(day).Equal(morning) || !both.End(morning).Equal(morning.Add(10*time.Hour)) {
		t.Errorf("a digest from %v ends at %v", day, both.End(day))
	}
}

// TestDays holds what crontab(5) says of two days: one suffices, unless one begins with *.
func TestDays(t *testing.T) {
	for line, want := range map[string]string{
		"0 9 1 * 1":             "11-23 11-30 12-01 12-07", // the first, and every Monday
		"0 0 */2 * mon":         "11-23 12-07 12-21 01-11", // Mondays of odd date
		"0 0 1-7 * */3":         "12-02 12-05 12-06 01-02", // Sundays, Wednesdays, Saturdays of a first week
		"0 0 */10 * *":          "12-01 12-11 12-21 12-31",
		"0 0 * * 5":             "11-27 12-04 12-11 12-18",
		"0 9 */2 * mon Etc/UTC": "11-23 12-07 12-21 01-11",
	} {
		var got []string
		for at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC); len(got) < 4; {
			at = Cron(line).Next(at)
			got = append(got, at.Format("01-02"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// TestQuietHoursNeverEndEarly: in each zone, whatever its clock does, the hours end later than any time
// in them, and within a day and the hours by which clocks are changed.
func TestQuietHoursNeverEndEarly(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "America/Sao_Paulo"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, hours := range []string{"22:00-07:00", "01:00-02:30", "02:00-03:00", "23:30-00:15", "03:00-01:59"} {
			q, err := ParseQuiet(hours + " " + name)
			if err != nil {
				t.Fatal(err)
			}
			for at := time.Date(2011, 12, 25, 0, 0, 0, 0, time.UTC); at.Year() < 2013; at = at.Add(23 * time.Minute) {
				clock := at.In(zone)
				now := clock.Hour()*60 + clock.Minute()
				within := q.From <= now && now < q.To
				if q.From > q.To {
					within = now >= q.From || now < q.To
				}
				end := q.End(at)
				if within != end.After(at) || end.Before(at) || end.Sub(at) > 27*time.Hour {
					t.Errorf("%v at %v: they end at %v", q, clock, end.In(zone))
					break
				}
			}
		}
	}
}
