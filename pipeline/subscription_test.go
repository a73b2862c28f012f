package pipeline

import (
	"slices"
	"strings"
	"testing"
)

func TestSubscriptionDefaults(t *testing.T) {
	s := Subscription{Stem: true, FilterStopwords: true}.WithDefaults()
	if s.Client != "default" || len(s.Events) != 2 || s.Interval != DefaultInterval || s.Match != MatchTerms || !s.IgnoreCase || *s.SnippetOffset != 50 {
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
	many := MaxSnippetOffset + 1
	err := Subscription{
		URL: "nowhere", Events: []Event{"changed"}, Interval: -2, Match: "fuzzy", SnippetOffset: &many,
		View: View{Ignore: []string{"("}, Confirm: -1},
	}.Validate()
	for _, field := range []string{"url", "keywords", "events[0]", "interval", "match", "snippet_offset", "sinks", "ignore[0]", "confirm"} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("Validate: %v, want %s in it", err, field)
		}
	}
	good := Subscription{URL: "https://example.com", Keywords: []string{"a"}, Sinks: []string{"s"}, Interval: Never}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
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
