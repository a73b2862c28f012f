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

func TestParseMinChange(t *testing.T) {
	for in, want := range map[string]struct {
		m       MinChange
		written string
	}{
		"5": {MinChange{Tokens: 5}, "5"}, "2%": {MinChange{Share: 200}, "2%"}, " 0.5 % ": {MinChange{Share: 50}, "0.5%"},
		"0.07%": {MinChange{Share: 7}, "0.07%"}, "100%": {MinChange{Share: 10_000}, "100%"}, "0": {}, "0%": {},
	} {
		got, err := ParseMinChange(in)
		if err != nil || got != want.m {
			t.Errorf("%q: got %+v, %v, want %+v", in, got, err, want.m)
		}
		if want.written != "" && got.String() != want.written {
			t.Errorf("%q is written %q, want %q", in, got, want.written)
		}
		b, err := json.Marshal(got)
		var read MinChange
		if err != nil || json.Unmarshal(b, &read) != nil || read != got {
			t.Errorf("%q becomes %s and then %+v (%v)", in, b, read, err)
		}
	}
	for in, want := range map[string]string{
		"": "neither", "few": "neither", "-1": "neither", "-2%": "neither", "2.5": "neither", "%": "neither", "NaN%": "neither", "5 words": "neither",
		"101%": "at most 100%", "0.001%": "two decimal places", "99999999999999999999": "more tokens",
	} {
		if got, err := ParseMinChange(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", in, got, err, want)
		}
	}
	var m MinChange
	if err := json.Unmarshal([]byte("7"), &m); err != nil || m.Tokens != 7 {
		t.Errorf("7 as a number: %+v, %v", m, err)
	}
	if err := json.Unmarshal([]byte("true"), &m); err == nil || !strings.Contains(err.Error(), "min_change") {
		t.Errorf("true: %v", err)
	}
}

func TestMinChangeAdmits(t *testing.T) {
	for _, c := range []struct {
		m               MinChange
		changed, length int
		want            bool
	}{
		{MinChange{}, 0, 0, true},
		{MinChange{Tokens: 5}, 4, 10, false}, {MinChange{Tokens: 5}, 5, 10, true},
		{MinChange{Share: 200}, 1, 50, true}, {MinChange{Share: 200}, 1, 51, false},
		{MinChange{Share: 7}, 7, 10_000, true}, {MinChange{Share: 7}, 6, 10_000, false},
		{MinChange{Share: 10_000}, 2_000_000, 2_000_000, true}, {MinChange{Share: 10_000}, 1_999_999, 2_000_000, false},
	} {
		if got := c.m.Admits(c.changed, c.length); got != c.want {
			t.Errorf("%s admits %d of %d: %v", c.m, c.changed, c.length, got)
		}
	}
}

// TestValueChange: a condition is met at its edge only.
func TestValueChange(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      Condition
		word   bool
		values []string
		want   []string // what is reported of each change
	}{
		{"below", Condition{Below: "100"}, false, []string{"120.00 EUR", "95.00 EUR", "94 EUR", "101 EUR", "99 EUR", "100 EUR"},
			[]string{"Value 120.00 -> 95.00 EUR (below 100)", "", "", "Value 101 -> 99 EUR (below 100)", ""}},
		{"above", Condition{Above: "0.1"}, false, []string{"0.1", "0.10", "0.11", "0.2"}, []string{"", "Value 0.10 -> 0.11 (above 0.1)", ""}},
		{"share", Condition{ChangesBy: "5%"}, false, []string{"100", "104.99", "110.2395", "100"},
			[]string{"", "Value 104.99 -> 110.2395 (changed by 5% or more)", "Value 110.2395 -> 100 (changed by 5% or more)"}},
		{"amount", Condition{ChangesBy: "0.1"}, false, []string{"0.2", "0.3", "0.39"}, []string{"Value 0.2 -> 0.3 (changed by 0.1 or more)", ""}},
		{"none", Condition{}, false, []string{"1.0", "1.00", "2", "2 EUR"}, []string{"", "Value 1.00 -> 2", "Value 2 -> 2 EUR"}},
		{"either", Condition{Below: "10", Above: "20"}, false, []string{"15", "9", "21"}, []string{"Value 15 -> 9 (below 10)", "Value 9 -> 21 (above 20)"}},
		{"word", Condition{Becomes: "instock"}, true, []string{"OutOfStock", "InStock", "PreOrder", "InStock"},
			[]string{"Value OutOfStock -> InStock (becomes instock)", "", "Value PreOrder -> InStock (becomes instock)"}},
	} {
		s := Subscription{View: View{Value: &Value{Word: tt.word}}, Condition: tt.c}
		for i, want := range tt.want {
			got := ""
			if c, ok := s.ValueChange(tt.values[i]+"\n", tt.values[i+1]+"\n"); ok {
				got = c.String()
			}
			if got != want {
				t.Errorf("%s: %s to %s: got %q, want %q", tt.name, tt.values[i], tt.values[i+1], got, want)
			}
		}
	}
}

// TestValuesThatAreRefused: a mistake names the field and what to do.
func TestValuesThatAreRefused(t *testing.T) {
	price := &Value{Offer: OfferPrice}
	for want, s := range map[string]Subscription{
		"below: it is a condition on a value":     {Condition: Condition{Below: "1"}},
		"below: \"x\" is not a number":            {View: View{Value: price}, Condition: Condition{Below: "x"}},
		"changes_by: must be more than 0":         {View: View{Value: price}, Condition: Condition{ChangesBy: "0%"}},
		"becomes: it compares words":              {View: View{Value: price}, Condition: Condition{Becomes: "x"}},
		"keywords: a subscription with value":     {View: View{Value: price}, Keywords: []string{"k"}},
		"value.pattern: \"a\" has 0 groups":       {View: View{Value: &Value{Pattern: "a"}}},
		"value.offer: \"cost\" is not known":      {View: View{Value: &Value{Offer: "cost"}}},
		"value: it does not say where":            {View: View{Value: &Value{}}},
		"below: it compares numbers, but the val": {View: View{Value: &Value{Offer: OfferAvailability}}, Condition: Condition{Below: "1"}},
	} {
		s.URL, s.Sinks = "https://example.com/", []string{"x"}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCompilePattern(t *testing.T) {
	for _, p := range []string{"", `\d{1,2}:\d{2} Uhr`, `[0-9a-f]{64}`, `(?i)updated .{0,200} ago`, strings.Repeat("ä", 900), `\p{L}+(-\p{L}+)*`} {
		if re, err := compilePattern(p); err != nil || re.String() != p {
			t.Errorf("%.40q: got %v, %v", p, re, err)
		}
	}
	for p, want := range map[string]string{
		"(":                                 `"(" is not a regular expression`,
		`(a{1,30}){1,30}z`:                  "instructions, and at most 1000",
		`(?:a?){1000}(?:a?){1000}z`:         "instructions, and at most 1000",
		`((a{1,25}){1,25}z){1,1}`:           "instructions, and at most 1000",
		strings.Repeat("(a{1,9}){1,9}", 77): "too long",
		strings.Repeat("x", 1001):           "too long",
	} {
		if _, err := compilePattern(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", p, err, want)
		}
	}
}
