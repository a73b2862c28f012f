package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
)

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
