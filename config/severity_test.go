package config

import (
	"strings"
	"testing"
)

func TestSeverityAndChannel(t *testing.T) {
	c, err := Parse("c.yaml", followFile("{depth: 1}, severity: critical, channel: '#legal'"), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Router.Subscriptions[0]; s.Severity != "critical" || s.Channel != "#legal" {
		t.Errorf("got %q and %q", s.Severity, s.Channel)
	}
	for given, want := range map[string]string{
		"severity: urgent":   `severity: "urgent" is not known; write info, warning or critical`,
		"channel: 'a b'":     `channel: "a b" is not a channel`,
		"channel: \"a\\nb\"": "is not a channel",
	} {
		if _, err := Parse("c.yaml", followFile("{depth: 1}, "+given), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", given, err, want)
		}
	}
}
