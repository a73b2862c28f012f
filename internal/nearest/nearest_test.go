package nearest

import (
	"fmt"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	keys := []string{"url", "client", "keywords", "events", "select", "sinks"}
	for name, want := range map[string]string{
		"keyword": "keywords", "Keywords": "keywords", "urll": "url", "slect": "select", "slecet": "select",
		"sink": "sinks", "even": "events",
	} {
		if got, _ := Name(name, keys); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
	if got, d := Name("x", nil); got != "" || d != 0 {
		t.Errorf("Name without known names = %q, %d", got, d)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ü", "u", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"keyword", []string{"keywords", "url"}, `did you mean "keywords"?`},
		{"list", []string{"lint", "run", "watch"}, `did you mean "lint"?`},
		{"slack", []string{"stdout", "webhook"}, "known are stdout, webhook"},
		{"kafka", []string{"local"}, `the only known one is "local"`},
		{"keywords_list", []string{"keywords", "url"}, `did you mean "keywords"?`},
		{"a", []string{"b", "c"}, "known are b, c"},
		{"s", []string{"stem", "url"}, "known are stem, url"},
		{"explain", []string{"demo", "lint", "run", "watch"}, "known are demo, lint, run, watch"},
		{"--brokers", []string{"--format", "--remove"}, "known are --format, --remove"},
		{"x", nil, "there are none"},
		{"ignore_case", []string{"ignore", "match_case"}, `that is the default, and "match_case" turns it off`},
		{"--ignore-case", []string{"--ignore", "--match-case"}, `that is the default, and "--match-case" turns it off`},
		{strings.Repeat("x", 1000), []string{"local"}, `the only known one is "local"`},
	} {
		if got := Hint(c.name, c.known); got != c.want {
			t.Errorf("Hint(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHintIsBounded(t *testing.T) {
	var known []string
	for i := range maxListed + 2 {
		known = append(known, fmt.Sprintf("name%02d", i))
	}
	got := Hint("entirely different", known)
	if !strings.HasSuffix(got, "name29 and 2 more") || strings.Contains(got, "name30") {
		t.Errorf("got %q", got)
	}
}
