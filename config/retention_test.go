package config

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
)

func TestRetention(t *testing.T) {
	c, err := Parse("f", []byte(`
retention: {age: 90d, versions: 50, disk: 12.5%}
documents:
  - {url: https://example.com/a, keep: true, retention: {versions: 1000, age: 1d12h}}
  - {url: https://example.com/b, keep: true}
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Router
	if want := (vokter.Retention{Age: 2160 * time.Hour, Versions: 50, Disk: 0.125}); r.Retention != want ||
		r.Documents[0].Retention != (vokter.Retention{Age: 36 * time.Hour, Versions: 1000}) || r.Documents[1].Retention != (vokter.Retention{}) {
		t.Errorf("got %+v", r)
	}
	if _, err := vokter.New(r); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"retention: {versions: 1}":    "retention.versions: 1 is not between 2, which a difference takes, and 1000",
		"retention: {versions: 1001}": "retention.versions: 1001 is not between 2, which a difference takes, and 1000",
		"retention: {age: 0s}":        "must be longer than 0",
		"retention: {disk: 0.5}":      `"0.5" is not a share`,
		"retention: {disk: 101%}":     `"101%" is not a share`,
		"keep_versions: 5":            `unknown key "keep_versions"`,
		"documents: [{url: https://example.com/a, keep: true, retention: {versions: -1}}]":        "documents[0].retention.versions: -1 is not between 2",
		"documents: [{url: https://example.com/a, keep: true, retention: {disk: 5%}}]":            `unknown key "disk"`,
		"documents: [{url: https://example.com/a, retention: {versions: 5}, changes: [x]}]":       "documents[0].keep: must be true for retention, changes to hold; add keep: true",
		"documents: [{url: https://example.com/a, keep: false}]":                                  "an entry without it does nothing",
		"expire: {after: 3, retry: soon}":                                                         `expire.retry: "soon" is neither a duration such as 12h or 30d, nor never`,
		"subscriptions: [{url: https://example.com/a, sinks: [x], expire: {after: 0}}]":           "subscriptions[0].expire.after must be at least 1",
		"documents: [{url: https://example.com/a, keep: true, expire: {retry: 30d, after: ten}}]": "documents[0].expire.after must be a whole number or never",
	} {
		if _, err := Parse("f", []byte(text), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, r := range []vokter.Retention{{Versions: 1}, {Versions: 1001}, {Age: -1}, {Disk: 1.5}} {
		_, err := vokter.New(vokter.Config{Retention: r})
		if err == nil || !strings.Contains(err.Error(), "retention") {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}
