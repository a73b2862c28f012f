package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestSitemap(t *testing.T) {
	file := func(keys string) []byte {
		return []byte("sinks: {out: {fake: {url: x}}}\nsubscriptions:\n- {keywords: [k], sinks: [out], " + keys + "}\n")
	}
	const sitemap = "sitemap: 'https://example.com/s.xml'"
	c, err := Parse("c.yaml", file(sitemap+", follow: {max_pages: 7}"), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Router.Subscriptions[0]
	if s.URL != "https://example.com/s.xml" || !s.Sitemap || !reflect.DeepEqual(s.Follow, &pipeline.Follow{MaxPages: 7}) {
		t.Errorf("got %+v", s)
	}
	for keys, want := range map[string]string{
		"events: [added]":                                         "has no url; add one such as",
		sitemap + ", url: 'https://example.com/'":                 "has both url and sitemap",
		"sitemap: ''":                                             "sitemap is empty",
		"sitemap: 'ftp://example.com/'":                           "subscriptions[0].sitemap: \"ftp://example.com/\"",
		sitemap + ", items: true":                                 "subscriptions[0].items: a sitemap lists pages",
		sitemap + ", interval: 'never'":                           "subscriptions[0].sitemap: the pages of a sitemap are found when",
		sitemap + ", follow: {depth: 1}":                          "follow.depth: the pages that a sitemap lists are watched",
		sitemap + ", follow: {max_pages: 10001}":                  "follow.max_pages: 10001 is not between 1 and 10000",
		sitemap + "}\n- {keywords: [k], sinks: [out], " + sitemap: "client \"default\" already has a subscription",
	} {
		_, err := Parse("c.yaml", file(keys), fakeOptions(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", keys, err, want)
		}
	}
}
