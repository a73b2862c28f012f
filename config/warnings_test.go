package config

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		s    pipeline.Subscription
		want []string
	}{
		{pipeline.Subscription{Stem: true, FilterStopwords: true}, nil},
		{pipeline.Subscription{Language: "en-GB", Stem: true, FilterStopwords: true}, nil},
		{pipeline.Subscription{Language: "de"}, nil},
		{pipeline.Subscription{Language: "de", Stem: true, FilterStopwords: true}, []string{
			`has no effect: there are no stems for the language "de", only for en`,
			`has no effect: there are no stop words for the language "de", only for en`,
		}},
	} {
		got := Warnings(c.s)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %v, want %q", c.s, got, c.want)
			continue
		}
		for i, w := range got {
			if w.Reason != c.want[i] {
				t.Errorf("got %q, want %q", w.Reason, c.want[i])
			}
		}
	}
}

func TestConfirmZero(t *testing.T) {
	const text = `sinks: {out: {fake: {url: x}}}
subscriptions: [{url: "https://example.com/", keywords: [a], sinks: [out], confirm: 0}]
`
	_, err := Parse("c.yaml", []byte(text), options(nil))
	if want := "c.yaml:2:85: subscriptions[0].confirm: 0 is not at least 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
