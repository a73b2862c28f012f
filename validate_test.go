package vokter

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// mistaken are subscriptions that lint refuses, each with a part of the reason.
func mistaken() map[string]pipeline.Subscription {
	of := func(change func(*pipeline.Subscription)) pipeline.Subscription {
		s := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"a"}, Sinks: []string{"box"}}
		change(&s)
		return s
	}
	return map[string]pipeline.Subscription{
		"has the scheme ftp":     of(func(s *pipeline.Subscription) { s.URL = "ftp://example.com/" }),
		"user name or password":  of(func(s *pipeline.Subscription) { s.URL = "https://user:hunter2@example.com/" }),
		"at most 8192":           of(func(s *pipeline.Subscription) { s.URL += strings.Repeat("a", pipeline.MaxURL) }),
		"client: a name of 1001": of(func(s *pipeline.Subscription) { s.Client = strings.Repeat("ä", 1001) }),
		"has no word in it":      of(func(s *pipeline.Subscription) { s.Keywords = []string{"!"} }),
		"keywords[1]: a keyword of 1001 characters is too long; at most 1000": of(func(s *pipeline.Subscription) { s.Keywords = []string{"a", strings.Repeat("ä", 1001)} }),
		"10001 keywords are too many; at most 10000":                          of(func(s *pipeline.Subscription) { s.Keywords = make([]string, 10_001) }),
		"klingonish":                     of(func(s *pipeline.Subscription) { s.Language = "klingonish" }),
		":has within :has":               of(func(s *pipeline.Subscription) { s.Select = []pipeline.Selector{{CSS: "html:has(div:has(div:has(b)))"}} }),
		"is not a CSS selector":          of(func(s *pipeline.Subscription) { s.Remove = []pipeline.Selector{{CSS: "p["}} }),
		"instructions, and at most 1000": of(func(s *pipeline.Subscription) { s.Ignore = []string{"(a{1,30}){1,30}z"} }),
		"101 regular expressions":        of(func(s *pipeline.Subscription) { s.Ignore = make([]string, 101) }),
	}
}

// TestMistakenSubscriptions: New refuses what lint refuses, and shows no password.
func TestMistakenSubscriptions(t *testing.T) {
	for want, s := range mistaken() {
		_, err := New(Config{Subscriptions: []pipeline.Subscription{s}, Sinks: map[string]pipeline.Sink{"box": newMailbox()}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %.300v, want %q", err, want)
		}
	}
}

func TestSchemes(t *testing.T) {
	subscribed := func(s pipeline.Subscription, fetchers ...pipeline.Fetcher) error {
		s.Keywords, s.Sinks = []string{"a"}, []string{"box"}
		return Config{Subscriptions: []pipeline.Subscription{s}, Fetchers: fetchers, Sinks: map[string]pipeline.Sink{"box": newMailbox()}}.Validate()
	}
	if err := subscribed(pipeline.Subscription{URL: "ftp://example.com/", Interval: pipeline.Never}); err != nil {
		t.Errorf("a page that is pushed: %v", err)
	}
	if err := subscribed(pipeline.Subscription{URL: "gopher://example.com/"}, gophers{}); err != nil {
		t.Errorf("with a fetcher: %v", err)
	}
	for _, d := range []Document{{URL: "ftp://example.com/", Keep: true}, {URL: "https://u:hunter2@example.com/", Keep: true, Interval: pipeline.Never}} {
		if err := (Config{Documents: []Document{d}}).Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("document %+v: got %v", d, err)
		}
	}
	if err := (Config{Documents: []Document{{URL: "ftp://example.com/", Keep: true, Interval: pipeline.Never}}}).Validate(); err != nil {
		t.Errorf("a document that is pushed: %v", err)
	}
}

type gophers struct{ pipeline.Fetcher }

func (gophers) Schemes() []string { return []string{"gopher"} }
