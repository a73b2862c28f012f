package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// watchedAt is a page whose document has a text and subscriptions.
func watchedAt(url, hash string, view pipeline.View, subs ...pipeline.Subscription) inspect.Page {
	p := inspect.Page{URL: url, State: inspect.StateActive, Documents: []inspect.Document{{ID: "D", TextHash: hash, View: view}}}
	for _, s := range subs {
		s.URL, s.View = url, view
		p.Subscriptions = append(p.Subscriptions, inspect.Subscription{Subscription: s.WithDefaults(), Document: "D", State: inspect.StateActive})
	}
	return p
}

func newSubscription(client string, keywords ...string) pipeline.Subscription {
	return pipeline.Subscription{Client: client, Keywords: keywords, Sinks: []string{"ops"}}
}

func TestSuggestText(t *testing.T) {
	stemmed := newSubscription("shop", "price")
	stemmed.Stem = true
	l := inspect.Listing{Pages: []inspect.Page{
		watchedAt("http://example.com/terms", "x", pipeline.View{}, newSubscription("ann", "refund")),
		watchedAt("https://example.com/other", "y", pipeline.View{}, newSubscription("ann", "refund")),
		watchedAt("https://example.com/terms", "x", pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}, newSubscription("ann", "privacy"), newSubscription("shop", "price: high")),
		watchedAt("https://www.example.com/terms", "x", pipeline.View{}, stemmed, newSubscription("default", "C#")),
		{URL: "https://example.com/unwatched", Documents: []inspect.Document{{ID: "D", TextHash: "y"}}},
	}}
	got := printedText(t, func(r *results) {
		if err := r.printSuggestions(suggestions(l)); err != nil {
			t.Fatal(err)
		}
	})
	want := `subscriptions:
  # https://example.com/terms has the same text as:
  #   http://example.com/terms
  #   https://www.example.com/terms
  # Watch it alone, by these in place of all subscriptions to them:
  - url: https://example.com/terms
    client: ann
    keywords: [privacy, refund]
    sinks: [ops]
    select:
      - main
  - url: https://example.com/terms
    client: shop
    keywords: ["price: high"]
    sinks: [ops]
    select:
      - main
  - url: https://example.com/terms
    keywords: ["C#"]
    sinks: [ops]
    select:
      - main
  # Client "shop" also watches https://www.example.com/terms with other options. It can have one subscription to a document,
  # so make the options equal, give it another client, or keep it as it is.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSuggestionIsAConfiguration reads a suggestion with every option as a configuration.
func TestSuggestionIsAConfiguration(t *testing.T) {
	offset := 7
	view := pipeline.View{
		Select: []pipeline.Selector{{CSS: "#main > p"}, {XPath: "//p[1]"}, {From: "h2", To: "h3"}}, Remove: []pipeline.Selector{{CSS: "nav"}},
		Ignore: []string{`\d+: \d+`}, Confirm: 2, FlipFlop: 3,
	}
	full := pipeline.Subscription{
		Client: "a: b", Keywords: []string{"C#", "- x", "it's \"so\"", "12.50", "null"}, Events: []pipeline.Event{pipeline.Added},
		Interval: pipeline.Every(time.Hour), FilterStopwords: true, IgnoreDiacritics: true, Match: pipeline.MatchPhrase, Near: pipeline.NearRow, Moved: true, Language: "de",
		SnippetOffset: &offset, Sinks: []string{"ops"}, Digest: &pipeline.Digest{Cron: "0 9 * * 1-5 UTC", Max: 20}, MinChange: pipeline.MinChange{Share: 250},
	}
	hourly := newSubscription("hourly", "x")
	hourly.Digest, hourly.Stem = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}, true
	never := newSubscription("never", "x")
	never.Interval = pipeline.Never
	all := suggestions(inspect.Listing{Pages: []inspect.Page{
		watchedAt("https://example.com/a", "x", view, full, hourly), watchedAt("https://example.com/b", "x", view, never),
	}})
	text := printedText(t, func(r *results) {
		if err := r.printSuggestions(all); err != nil {
			t.Fatal(err)
		}
	})
	c, err := config.Parse("suggested.yaml", []byte("data: d\nsinks: {ops: {webhook: {url: https://example.com/}}}\n"+text), config.Options{Registry: new(app).plugins()})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	got := c.Router.Subscriptions
	if len(got) != 3 || len(all) != 1 || len(all[0].Subscriptions) != 3 {
		t.Fatalf("got %+v from\n%s", got, text)
	}
	for i, want := range all[0].Subscriptions {
		if got := got[i].WithDefaults(); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v from\n%s", got, want, text)
		}
	}
}

func TestSuggest(t *testing.T) {
	s := newTestSetup(t, "")
	s.check(t, "<p>Zeus. In stock.</p>")
	if r := runCLI(t, "list", "--duplicates", "--suggest", "-c", s.config); r.code != 1 || !strings.Contains(r.stderr, "no two pages with subscriptions have the same text") {
		t.Errorf("got %+v", r)
	}
	if r := runCLI(t, "list", "--suggest", "-c", s.config); r.code != 2 || !strings.Contains(r.stderr, "give --duplicates too") {
		t.Errorf("got %+v", r)
	}
}
