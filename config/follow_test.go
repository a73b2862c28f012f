package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func followFile(follow string) []byte {
	return []byte("sinks: {out: {fake: {url: x}}}\nsubscriptions:\n- {url: 'https://example.com/', keywords: [k], sinks: [out], follow: " + follow + "}\n")
}

func TestFollow(t *testing.T) {
	c, err := Parse("c.yaml", followFile("{depth: 2, same_host: false, max_pages: 7, include: ['/a/'], exclude: ['[?]']}"), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := false
	want := &pipeline.Follow{Depth: 2, SameHost: &elsewhere, MaxPages: 7, Include: []string{"/a/"}, Exclude: []string{"[?]"}}
	if got := c.Router.Subscriptions[0].Follow; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for follow, want := range map[string]string{
		"{depth: 0}":                    "follow.depth: 0 is not between 1 and 10",
		"{depth: 11}":                   "follow.depth: 11 is not between 1 and 10",
		"{max_pages: 0}":                "follow.max_pages: 0 is not between 1 and 10000",
		"{max_pages: 10001}":            "follow.max_pages: 10001 is not between 1 and 10000",
		"{include: ['(']}":              "follow.include[0]: error parsing regexp",
		"{exclude: ['']}":               "follow.exclude[0] is empty",
		"{deep: 2}":                     "depth",
		"{depth: 1}, interval: 'never'": "follow: links are found in pages that are fetched",
	} {
		if _, err := Parse("c.yaml", followFile(follow), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", follow, err, want)
		}
	}
}
