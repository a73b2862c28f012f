package pipeline

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDurationsAreText(t *testing.T) {
	s := Subscription{Interval: Duration(90 * time.Second), Digest: &Digest{Every: Duration(time.Hour)}}
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
	for text, want := range map[string]Duration{`"10m"`: Duration(10 * time.Minute), `"never"`: Never, `"0s"`: 0} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || d != want {
			t.Errorf("%s is %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{`600000000000`, `"600000000000"`, `"-1ns"`, `"ten minutes"`} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is %v, want an error", text, d)
		}
	}
	if b, err := json.Marshal(Never); err != nil || string(b) != `"never"` {
		t.Errorf("%s, %v", b, err)
	}
}
