package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestWarnings(t *testing.T) {
	const every = "has no effect without keywords: every change is reported as it stands"
	words := []string{"a"}
	for _, c := range []struct {
		s    pipeline.Subscription
		want []string
	}{
		{pipeline.Subscription{Keywords: words, Stem: true, FilterStopwords: true}, nil},
		{pipeline.Subscription{Keywords: words, Language: "en-GB", Stem: true, FilterStopwords: true}, nil},
		{pipeline.Subscription{Language: "de"}, nil},
		{pipeline.Subscription{Stem: true, Match: pipeline.MatchTerms}, []string{every, every}},
		{pipeline.Subscription{Keywords: words, Language: "ja", Stem: true, FilterStopwords: true}, []string{
			`has no effect: there are no stems for the language "ja", only for ar, da, de, en, es, fi, fr, ga, hu, it, nl, no, pt, ro, ru, sv, ta, tr`,
			`has no effect: there are no stop words for the language "ja", only for ar, bg, ca, ckb, cs, da, de, el, en, es, eu, fa, fi, fr, ga, gl, he, hi, hr, hu, hy, id, it, nl, no, pl, pt, ro, ru, sk, sv, ta, tr, uk`,
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
	_, err := Parse("c.yaml", []byte(text), fakeOptions(nil))
	if want := "c.yaml:2:85: subscriptions[0].confirm: 0 is not between 1 and 1000"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWarningsOfAFile: what is valid and will not do what it seems to.
func TestWarningsOfAFile(t *testing.T) {
	const (
		sink = "sinks: {out: {fake: {url: https://example.com}}}\n"
		sub  = sink + "subscriptions:\n- {keywords: [a], sinks: [out], "
	)
	for text, want := range map[string]string{
		"":                                    "1:1: there are neither subscriptions nor documents: nothing is watched",
		sink:                                  "1:1: there are neither subscriptions nor documents: nothing is watched",
		sub + "url: http://192.168.0.1/}":     "3:38: subscriptions[0].url: every check will fail, since 192.168.0.1 is not a public address; permit it with allow: {fetch: [192.168.0.1/32]}",
		sub + "url: http://LOCALHOST.:8080/}": "3:38: subscriptions[0].url: every check will fail, since localhost is not a public address; permit it with allow: {fetch: [127.0.0.1/32]}",
		sub + "url: 'http://[::1]/'}":         "3:38: subscriptions[0].url: every check will fail, since ::1 is not a public address; permit it with allow: {fetch: [\"::1/128\"]}",
		sub + "url: http://10.0.0.1/, interval: never}":                                                                                                     "",
		sub + "url: http://93.184.216.34/}":                                                                                                                 "",
		sub + "url: https://a.example/, interval: 3s}":                                                                                                      "3:68: subscriptions[0].interval: 3s is raised to 10s, which is fetch.min_interval",
		sub + "url: https://a.example/, interval: 10s}":                                                                                                     "",
		"fetch: {min_interval: 1s}\n" + sub + "url: https://a.example/, interval: 3s}":                                                                      "",
		"fetch: {min_interval: 1h}\n" + sub + "url: https://a.example/, interval: 3m}":                                                                      "4:68: subscriptions[0].interval: 3m0s is raised to 1h0m0s, which is fetch.min_interval",
		"allow: {fetch: [192.168.0.0/16]}\n" + sub + "url: http://192.168.0.1/}":                                                                            "",
		"allow: {fetch: [127.0.0.1]}\n" + sub + "url: http://sub.localhost/}":                                                                               "",
		"documents: [{url: http://10.0.0.1/, keep: true}]":                                                                                                  "1:19: documents[0].url: every check will fail, since 10.0.0.1 is not a public address; permit it with allow: {fetch: [10.0.0.1/32]}",
		"documents: [{url: http://10.0.0.1/, keep: true, interval: never}]":                                                                                 "",
		sub + "url: https://a.example/}\n- {url: https://b.example/, keywords: ['issue #5', b], sinks: [out]}":                                              "",
		sink + "subscriptions:\n- url: https://a.example/\n  sinks: [out]\n  keywords:\n  - issue #5\n  - b # as well\n  - 'c #6'\n":                        "6:11: subscriptions[0].keywords[0] ends before the #, which starts a comment; " + quoteHint,
		sub + "url: https://a.example/, stem: true, language: en}":                                                                                          "",
		"sinks: {out: {fake: {url: 'http://127.0.0.1:80/?token=hush'}}}\ndocuments: [{url: https://a.example/, keep: true}]":                                "1:27: sinks.out.fake.url: every delivery will fail, since 127.0.0.1 is not a public address; permit it with allow: {sinks: [127.0.0.1/32]}",
		"allow: {sinks: [127.0.0.0/8]}\nsinks: {out: {fake: {url: 'http://127.0.0.1:80/?token=hush'}}}\ndocuments: [{url: https://a.example/, keep: true}]": "",
	} {
		c, err := Parse("c.yaml", []byte(text), fakeOptions(nil))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want != "" {
			want = "c.yaml:" + want
		}
		if got := c.Warnings.Error(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestMisread: what YAML takes otherwise than it is meant is named, with the remedy.
func TestMisread(t *testing.T) {
	const sub = "subscriptions:\n- url: https://a.example/\n  sinks: [out]\n"
	for text, want := range map[string]string{
		sub + "  select: [#price]\n":                        "4:12: not YAML: " + commentHint,
		sub + "  select: [.a, #price]\n":                    "4:16: not YAML: " + commentHint,
		sub + "  select: [\"#a\", #price]\n":                "4:18: not YAML: " + commentHint,
		sub + "  keywords: [release #5, x]\n  stem: true\n": "4:22: not YAML: " + commentHint,
		sub + "  keywords: [\n    a,\n    #price]\n":        "6:5: not YAML: " + commentHint,
		sub + "  keywords:\n  - #price\n":                   "5:5: subscriptions[0].keywords[0] has no value: " + commentHint,
		sub + "  select: #price\n":                          "4:11: subscriptions[0].select has no value: " + commentHint,
		sub + "  select: # later\n":                         "4:11: subscriptions[0].select has no value; give it one or remove the key",
		sub + "\tselect: a\n":                               "4:1: not YAML: " + tabHint,
		sub + "  keywords:\n  \t- a\n":                      "5:3: not YAML: " + tabHint,
		sub + "  keywords: [a\n":                            "4:13: not YAML: sequence end token ']' not found",
	} {
		_, err := Parse("c.yaml", []byte(text), fakeOptions(nil))
		errs, ok := errors.AsType[Errors](err)
		if !ok || errs[0].Error() != "c.yaml:"+want && !strings.Contains(err.Error(), "c.yaml:"+want) {
			t.Errorf("%s:\ngot  %v\nwant c.yaml:%s", text, err, want)
		}
	}
}
