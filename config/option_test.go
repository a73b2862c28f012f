package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

// TestEveryOption sets each option from the text of a flag and gets the same text back. Then it writes the subscription
// as YAML and reads the same one from that.
func TestEveryOption(t *testing.T) {
	texts := map[string][]string{
		"url": {"https://example.com/"}, "client": {"ann"}, "title": {`A: "b"`}, "keywords": {"a, b", "c"},
		"interval": {"10m0s to 24h0m0s"}, "match": {"phrase"}, "min_change": {"2.5%"},
		"language": {"de"}, "tags": {"a, b"}, "snippet_offset": {"0"}, "sinks": {"out"}, "digest": {"0 9 * * 1-5 Europe/Berlin"},
		"quiet": {"22:00-07:00 Europe/Berlin"}, "expire.after": {"never"}, "expire.retry": {"12h0m0s"},
		"channel": {"#c"}, "select": {"main", `{from: h1, to: "h2, h3"}`, "jq:.a[]", "lines:1-2"}, "remove": {"{from: h1}"}, "ignore": {`\d+, x`, "# y"},
		"follow.same_host": {"false"},
		"follow.include":   {"/a"}, "follow.exclude": {"/b, c"},
		"value.pattern": {"(.)"}, "below": {"1"}, "above": {"2.50"}, "changes_by": {"5%"}, "becomes": {"InStock"},
	}
	without := []string{"value", "expire", "follow", "value.language", "sitemap"}
	var all pipeline.Subscription
	for _, o := range pipeline.Options() {
		if slices.Contains(without, o.Name) {
			continue
		}
		given, ok := texts[o.Name]
		if !ok {
			switch given = []string{"true"}; { // an option of another type needs a text above
			case o.Kind() == reflect.Int:
				given = []string{strconv.Itoa(max(o.Min, 2))}
			case len(o.Values) > 0:
				given = []string{o.Values[0].Value}
			}
		}
		if err := SetOption(&all, o, given...); err != nil {
			t.Error(err)
		}
		if got := OptionTexts(all, o); !slices.Equal(got, given) {
			t.Errorf("%s: got %q, want %q", o.Name, got, given)
		}
	}
	want := all
	all = all.WithDefaults()
	all.Value.Language = ""
	text, err := yaml.Marshal(map[string]any{"subscriptions": []any{EncodeSubscription(all, browser.Page{})}})
	if err != nil {
		t.Fatal(err)
	}
	d, f := decodeFile("c.yaml", text, Options{LookupEnv: func(string) (string, bool) { return "", false }, Named: func(string) {}}, pieceSize)
	if len(d.errs) > 0 {
		t.Fatalf("%v of\n%s", d.errs, text)
	}
	got := f.Subscriptions[0].toPipeline()
	if want.Stem {
		want.MatchCase = false
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v\nof\n%s", got, want, text)
	}
	text, err = yaml.Marshal(EncodeSubscription(pipeline.Subscription{URL: "https://example.com/", Sinks: []string{"out"},
		View: pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}, Confirm: 1}}, browser.Page{}))
	if plain := "url: https://example.com/\nsinks: [out]\nselect:\n- main\n"; err != nil || string(text) != plain {
		t.Errorf("got %s %v, want %s", text, err, plain)
	}
	for _, line := range Settings(all) {
		if key, value, ok := strings.Cut(line, ": "); !ok || value == "" || strings.Contains(line, "\n") {
			t.Errorf("%s is set to %q", key, value)
		}
	}
}

func TestSetOptionMistakes(t *testing.T) {
	for name, text := range map[string]string{
		"stem": "maybe", "confirm": "0", "flip_flop": "1", "snippet_offset": "501", "interval": "often", "below": "a hundred", "quiet": "7-9",
		"select": "p[", "digest": "soon", "expire.after": "0", "expire.retry": "soon", "follow.depth": "x", "min_change": "much", "events": "",
	} {
		o, ok := pipeline.OptionCalled(name)
		if !ok {
			t.Fatal(name)
		}
		var s pipeline.Subscription
		if err := SetOption(&s, o, text); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	o, _ := pipeline.OptionCalled("interval")
	s := pipeline.Subscription{Interval: pipeline.Never}
	if err := SetOption(&s, o, "90s"); err != nil || s.Interval != pipeline.Every(90*time.Second) {
		t.Errorf("got %v, %v", s.Interval, err)
	}
}
