package vokter

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// mistaken are subscriptions that lint refuses, each with a part of the reason.
func mistaken() map[string]Subscription {
	of := func(change func(*Subscription)) Subscription {
		s := Subscription{URL: "https://example.com/", Keywords: []string{"a"}, Sinks: []string{"box"}}
		change(&s)
		return s
	}
	return map[string]Subscription{
		"has the scheme ftp":     of(func(s *Subscription) { s.URL = "ftp://example.com/" }),
		"user name or password":  of(func(s *Subscription) { s.URL = "https://user:hunter2@example.com/" }),
		"at most 8192":           of(func(s *Subscription) { s.URL += strings.Repeat("a", pipeline.MaxURL) }),
		"client: a name of 1001": of(func(s *Subscription) { s.Client = strings.Repeat("ä", 1001) }),
		"has no word in it":      of(func(s *Subscription) { s.Keywords = []string{"!"} }),
		"keywords[1]: a keyword of 1001 characters is too long; at most 1000": of(func(s *Subscription) { s.Keywords = []string{"a", strings.Repeat("ä", 1001)} }),
		"10001 keywords are too many; at most 10000":                          of(func(s *Subscription) { s.Keywords = make([]string, 10_001) }),
		"klingonish":                     of(func(s *Subscription) { s.Language = "klingonish" }),
		":has within :has":               of(func(s *Subscription) { s.Select = []Selector{{CSS: "html:has(div:has(div:has(b)))"}} }),
		"is not a CSS selector":          of(func(s *Subscription) { s.Remove = []Selector{{CSS: "p["}} }),
		"instructions, and at most 1000": of(func(s *Subscription) { s.Ignore = []string{"(a{1,30}){1,30}z"} }),
		"101 regular expressions":        of(func(s *Subscription) { s.Ignore = make([]string, 101) }),
	}
}

// TestMistakenSubscriptions: New refuses what lint refuses, and shows no password.
func TestMistakenSubscriptions(t *testing.T) {
	for want, s := range mistaken() {
		_, err := New(Config{Subscriptions: []Subscription{s}, Sinks: map[string]Sink{"box": newMailbox()}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %.300v, want %q", err, want)
		}
	}
}

func TestSchemes(t *testing.T) {
	subscribed := func(s Subscription, fetchers ...Fetcher) error {
		s.Keywords, s.Sinks = []string{"a"}, []string{"box"}
		return Config{Subscriptions: []Subscription{s}, Fetchers: fetchers, Sinks: map[string]Sink{"box": newMailbox()}}.Validate()
	}
	if err := subscribed(Subscription{URL: "ftp://example.com/", Interval: Never}); err != nil {
		t.Errorf("a page that is pushed: %v", err)
	}
	if err := subscribed(Subscription{URL: "gopher://example.com/"}, gophers{}); err != nil {
		t.Errorf("with a fetcher: %v", err)
	}
	for _, d := range []Document{{URL: "ftp://example.com/", Keep: true}, {URL: "https://u:hunter2@example.com/", Keep: true, Interval: Never}} {
		if err := (Config{Documents: []Document{d}}).Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("document %+v: got %v", d, err)
		}
	}
	if err := (Config{Documents: []Document{{URL: "ftp://example.com/", Keep: true, Interval: Never}}}).Validate(); err != nil {
		t.Errorf("a document that is pushed: %v", err)
	}
}

type gophers struct{ Fetcher }

func (gophers) Schemes() []string { return []string{"gopher"} }
