package config

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
)

func TestRetention(t *testing.T) {
	c, err := Parse("f", []byte(`
keep_versions: 50
keep_for: 2160h
documents:
  - {url: https://example.com/a, keep: true, keep_versions: 1000, keep_for: 43800h}
  - {url: https://example.com/b, keep: true}
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Router
	if r.KeepVersions != 50 || r.KeepFor != 2160*time.Hour || r.Documents[0].KeepVersions != 1000 || r.Documents[0].KeepFor != 43800*time.Hour ||
		r.Documents[1].KeepVersions != 0 || r.Documents[1].KeepFor != 0 {
		t.Errorf("got %+v", r)
	}
	if _, err := vokter.New(r); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"keep_versions: 0":    "keep_versions: 0 is not between 1 and 1000",
		"keep_versions: 1001": "keep_versions: 1001 is not between 1 and 1000",
		"keep_for: 90d":       "write 2160h",
		"keep_for: 0s":        "must be longer than 0",
		"documents: [{url: https://example.com/a, keep: true, keep_versions: -1}]":  "documents[0].keep_versions: -1 is not between 1 and 1000",
		"documents: [{url: https://example.com/a, keep_versions: 5, changes: [x]}]": "documents[0].keep: must be true for keep_versions, changes to hold; add keep: true",
		"documents: [{url: https://example.com/a, keep: false}]":                    "an entry without it does nothing",
	} {
		if _, err := Parse("f", []byte(text), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, c := range []vokter.Config{{KeepVersions: -1}, {KeepVersions: 1001}, {KeepFor: -1}, {Documents: []vokter.Document{{URL: "https://example.com/", Keep: true, KeepVersions: 1001}}}} {
		if _, err := vokter.New(c); err == nil || !strings.Contains(strings.ToLower(err.Error()), "keep") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
