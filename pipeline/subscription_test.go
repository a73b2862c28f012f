package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSubscriptionDefaults(t *testing.T) {
	s := Subscription{Stem: true, FilterStopwords: true}.WithDefaults()
	if s.Client != "default" || len(s.Events) != 2 || s.Interval != Every(time.Duration(DefaultInterval)) || s.Match != MatchTerms || s.MatchCase || *s.SnippetOffset != 50 {
		t.Errorf("got %+v", s)
	}
	if m := (Subscription{}).WithDefaults().Match; m != MatchPhrase {
		t.Errorf("match is %q, want phrase", m)
	}
	if m := (Subscription{FilterStopwords: true, Match: MatchPhrase}).WithDefaults().Match; m != MatchPhrase {
		t.Errorf("a match that was asked for became %q", m)
	}
}

func TestSubscriptionValidate(t *testing.T) {
	many := maxSnippetOffset + 1
	err := Subscription{
		URL: "nowhere", Keywords: []string{}, Events: []Event{"changed"}, Interval: Every(-2), Match: "fuzzy", SnippetOffset: &many,
		View: View{Ignore: []string{"("}, Confirm: -1},
	}.Validate()
	for _, field := range []string{"url", "keywords", "events[0]", "interval", "match", "snippet_offset", "sinks", "ignore[0]", "confirm"} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("Validate: %v, want %s in it", err, field)
		}
	}
	good := Subscription{URL: "https://example.com", Keywords: []string{"a"}, Sinks: []string{"s"}, Interval: Never}
	good.Confirm = MaxConfirm
	if err := good.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	bad := good
	bad.Confirm++
	bad.Client, bad.Channel, bad.Tags = "\x00\x1b[31m", "\x1b", []string{"\x1b"}
	for _, want := range []string{
		"confirm: 1001 is not between 1 and 1000", `client: "\x00\x1b[31m" has a control character`, `channel: "\x1b" is not a channel`, `tags[0]: "\x1b" has a blank`,
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate: %v, want %s", err, want)
		}
	}
	if !good.Wants(Added) || !good.Wants(Removed) || (Subscription{Events: []Event{Added}}).Wants(Removed) {
		t.Error("no events means both, and otherwise only those named")
	}
}

func TestReceivers(t *testing.T) {
	got := Subscription{Sinks: []string{"b", "a", "b"}}.Receivers()
	if want := []Receiver{{Sink: "b"}, {Sink: "a"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDigestsThatCanBeUsed(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // a part of the error, or none
	}{
		{"1h", ""},
		{"1s", ""},
		{"744h", ""},
		{"0 9 * * 1-5 Europe/Berlin", ""},
		{"*/15 * * * *", ""},
		{"0 0 29 2 *", ""},
		{"", "neither a duration"},
		{"daily", "neither a duration"},
		{"-1h", "neither a duration"},
		{"0s", "neither a duration"},
		{"999ms", "is not between 1s and 744h0m0s"},
		{"745h", "is not between 1s and 744h0m0s"},
		{"0 9 * *", "it has 4 fields"},
		{"0 0 9 * * 1-5 Europe/Berlin", "it has 7 fields"},
		{"61 9 * * *", `"61" is no minute (0 to 59)`},
		{"0 9 * * mo-fri", `"mo-fri" is no day of the week (0 to 7, or sun to sat)`},
		{"0 9 * * 1-5 Europe/Nowhere", `"Europe/Nowhere" is no time zone`},
		{"0 9 * * 1-5 Local", `"Local" is no time zone`},
		{"CRON_TZ=Europe/Berlin 0 9 * * 1-5", "the time zone stands last"},
		{"0 0 30 2 *", "there is no such day"},
	} {
		d, err := ParseDigest(c.text)
		if err == nil {
			err = d.Validate()
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want something with %q", c.text, err, c.want)
		}
	}
	for _, d := range []Digest{{}, {Every: Duration(time.Hour), Cron: "0 9 * * *"}, {Every: Duration(time.Hour), Max: -1}, {Every: Duration(time.Hour), Max: maxDigestItems + 1}} {
		if d.Validate() == nil {
			t.Errorf("%+v can be used", d)
		}
	}
}

func TestWhenADigestEnds(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		digest      Digest
		start, want string
	}{
		{Digest{Every: Duration(90 * time.Minute)}, "2026-11-21T20:00:00Z", "2026-11-21T21:30:00Z"},
		{Digest{Cron: "0 9 * * 1-5 Europe/Berlin"}, "2026-11-21T20:00:00Z", "2026-11-23T08:00:00Z"}, // a Saturday
		{Digest{Cron: "0 9 * * 1-5 Europe/Berlin"}, "2026-06-01T06:59:59Z", "2026-06-01T07:00:00Z"}, // in summer
		{Digest{Cron: "0 9 * * 1-5 Europe/Berlin"}, "2026-06-01T07:00:00Z", "2026-06-02T07:00:00Z"},
		{Digest{Cron: "30 2 * * * Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"}, // no such time that day
		{Digest{Cron: "0 9 * * *"}, "2026-11-21T20:00:00Z", "2026-11-22T09:00:00Z"},
		{Digest{Cron: "0 0 29 2 *"}, "2026-11-21T20:00:00Z", "2026-12-22T20:00:00Z"},          // not before 31 days are over
		{Digest{Cron: "0 9 * * * Mars/Here"}, "2026-11-21T20:00:00Z", "2026-11-21T20:00:00Z"}, // at once
		{Digest{Every: Duration(-time.Hour)}, "2026-11-21T20:00:00Z", "2026-11-21T20:00:00Z"},
	} {
		if got := c.digest.End(at(c.start)); !got.Equal(at(c.want)) {
			t.Errorf("%s from %s ends at %s, want %s", c.digest, c.start, got.UTC().Format(time.RFC3339), c.want)
		}
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("0 9 * * 1-5 Europe/Berlin")
	f.Add("TZ=0")
	f.Add("*/0 9-1 L * 7#5 ../../etc")
	f.Add("3 1 9 9 3")
	f.Add("0 0 * 2 3#5") // no such day for 28 years
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err != nil || d.Validate() != nil {
			return
		}
		start := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
		if end := d.End(start); !end.After(start) || end.Sub(start) > time.Duration(maxDigestWait) {
			t.Errorf("%q ends after %v", s, end.Sub(start))
		}
	})
}

func TestDurationsAreText(t *testing.T) {
	s := Subscription{Interval: Every(90 * time.Second), Digest: &Digest{Every: Duration(time.Hour)}}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Interval string
		Digest   struct{ Every string }
	}
	if err := json.Unmarshal(b, &fields); err != nil || fields.Interval != "1m30s" || fields.Digest.Every != "1h0m0s" {
		t.Errorf("%s is %+v, %v", b, fields, err)
	}
	for text, want := range map[string]Duration{`"10m"`: Duration(10 * time.Minute), `"0s"`: 0} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || d != want {
			t.Errorf("%s is %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{`600000000000`, `"600000000000"`, `"-1ns"`, `"ten minutes"`, `"never"`} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is %v, want an error", text, d)
		}
	}
	if b, err := json.Marshal(Never); err != nil || string(b) != `"never"` {
		t.Errorf("%s, %v", b, err)
	}
}
