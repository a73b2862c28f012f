package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/route"
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

// parseSinks reads a file with these sinks, two of which always exist.
func parseSinks(sinks string) (*Config, error) {
	o := fakeOptions(nil)
	route.Register(o.Registry)
	return Parse("c.yaml", []byte("sinks:\n  mail: {fake: {url: x}}\n  pager: {fake: {url: x}}\n"+sinks+"documents: [{url: 'https://example.com/', keep: true}]\n"), o)
}

func TestReceiving(t *testing.T) {
	c, err := parseSinks(`  chat:
    fake: {url: x}
    group_by: [host]
    group_wait: 2m
    quiet: 22:00-07:00 Europe/Berlin
    fallback: {to: mail, after: 10m}
  team: {route: {to: chat, routes: [{when: {host: "*.example.com", client: [a, b]}, to: [pager, chat], continue: true}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]pipeline.Receiving{"chat": {
		GroupBy: []string{"host"}, GroupWait: 2 * time.Minute, Quiet: pipeline.Quiet{From: 1320, To: 420, Zone: "Europe/Berlin"},
		Fallback: "mail", FallbackAfter: 10 * time.Minute,
	}}
	if got := c.Router.Delivery.Receivers; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	r, ok := registry.RouteOf(c.Router.Sinks["team"])
	if !ok || strings.Join(r.Targets(), " ") != "chat pager" {
		t.Errorf("the route leads to %v", r)
	}
}

func TestReceivingMistakes(t *testing.T) {
	for sinks, want := range map[string]string{
		"chat: {fake: {url: x}, group_by: [hots]}":                                             `c.yaml:4:37: sinks.chat.group_by[0]: "hots" cannot be grouped by`,
		"chat: {fake: {url: x}, group_wait: 1m}":                                               "sinks.chat.group_wait: it needs group_by",
		"chat: {fake: {url: x}, group_by: host, group_wait: 48h}":                              "sinks.chat.group_wait: 48h0m0s is not between",
		"chat: {fake: {url: x}, fallback: {to: mial, after: 1m}}":                              `no sink is named "mial"; did you mean "mail"`,
		"chat: {fake: {url: x}, fallback: {after: 1m}}":                                        "sinks.chat.fallback",
		"chat: {fake: {url: x}, fallback: {to: mail}}":                                         "sinks.chat.fallback.after: 0s is not between",
		"chat: {fake: {url: x}, quiet: at night}":                                              "quiet hours",
		"chat: {fake: {url: x}, fallback: {to: chat, after: 1m}}":                              "c.yaml:4:9: sinks.chat: it would pass notifications on to itself: chat to chat",
		"chat: {fake: {url: x}, fallback: {to: team, after: 1m}}\n  team: {route: {to: chat}}": "pass notifications on to itself: chat to team to chat",
		"team: {route: {to: chta}}":                                                            `sinks.team.route: no sink is named "chta"`,
		"team: {route: {}}":                                                                    "sinks.team.route.to: the route leads nowhere",
		"team: {route: {to: mail}, fallback: {to: mail, after: 1m}}":                           "a route delivers nothing itself; set fallback at the sinks",
		"team: {route: {to: mail}, rate: 1/s}":                                                 "a route delivers nothing itself; set rate at the sinks",
		"team: {route: {routes: [{to: mail}, {to: pager}]}}":                                   "sinks.team.route.routes[0]: it has no conditions",
		"team: {route: {routes: [{when: {days: [monday]}, to: mail}]}}":                        `sinks.team.route.routes[0].when.days: "monday" is not a day`,
		"team: {route: {routes: [{when: {host: '['}, to: mail}]}}":                             "sinks.team.route.routes[0].when.host",
		"chat: {fake: {url: x}, fallbck: {to: mail, after: 1m}}":                               "may have rate, timeout, group_by, group_wait, quiet, fallback, paused",
	} {
		if _, err := parseSinks("  " + sinks + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", sinks, err, want)
		}
	}
}

func TestRetention(t *testing.T) {
	c, err := Parse("f", []byte(`
retention: {age: 90d, versions: 50, disk: 12.5%}
documents:
  - {url: https://example.com/a, keep: true, retention: {versions: 1000, age: 1d12h}}
  - {url: https://example.com/b, keep: true}
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Router
	if want := (vokter.Retention{Age: 2160 * time.Hour, Versions: 50, Disk: 0.125}); r.Retention != want ||
		r.Documents[0].Retention != (vokter.Retention{Age: 36 * time.Hour, Versions: 1000}) || r.Documents[1].Retention != (vokter.Retention{}) {
		t.Errorf("got %+v", r)
	}
	if _, err := vokter.New(r); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"retention: {versions: 1}":    "retention.versions: 1 is not between 2, which a difference takes, and 1000",
		"retention: {versions: 1001}": "retention.versions: 1001 is not between 2, which a difference takes, and 1000",
		"retention: {age: 0s}":        "must be longer than 0",
		"retention: {disk: 0.5}":      `"0.5" is not a share`,
		"retention: {disk: 101%}":     `"101%" is not a share`,
		"keep_versions: 5":            `unknown key "keep_versions"`,
		"documents: [{url: https://example.com/a, keep: true, retention: {versions: -1}}]":        "documents[0].retention.versions: -1 is not between 2",
		"documents: [{url: https://example.com/a, keep: true, retention: {disk: 5%}}]":            `unknown key "disk"`,
		"documents: [{url: https://example.com/a, retention: {versions: 5}, changes: [x]}]":       "documents[0].keep: must be true for retention, changes to hold; add keep: true",
		"documents: [{url: https://example.com/a, keep: false}]":                                  "an entry without it does nothing",
		"expire: {after: 3, retry: soon}":                                                         `expire.retry: "soon" is neither a duration such as 12h or 30d, nor never`,
		"subscriptions: [{url: https://example.com/a, sinks: [x], expire: {after: 0}}]":           "subscriptions[0].expire.after must be at least 1",
		"documents: [{url: https://example.com/a, keep: true, expire: {retry: 30d, after: ten}}]": "documents[0].expire.after must be a whole number or never",
	} {
		if _, err := Parse("f", []byte(text), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, r := range []vokter.Retention{{Versions: 1}, {Versions: 1001}, {Age: -1}, {Disk: 1.5}} {
		_, err := vokter.New(vokter.Config{Retention: r})
		if err == nil || !strings.Contains(err.Error(), "retention") {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}

func TestSeverityAndChannel(t *testing.T) {
	c, err := Parse("c.yaml", followFile("{depth: 1}, severity: critical, channel: '#legal'"), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Router.Subscriptions[0]; s.Severity != "critical" || s.Channel != "#legal" {
		t.Errorf("got %q and %q", s.Severity, s.Channel)
	}
	for given, want := range map[string]string{
		"severity: urgent":   `severity: "urgent" is not known; write info, warning or critical`,
		"channel: 'a b'":     `channel: "a b" is not a channel`,
		"channel: \"a\\nb\"": "is not a channel",
	} {
		if _, err := Parse("c.yaml", followFile("{depth: 1}, "+given), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", given, err, want)
		}
	}
}

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

// TestTags: a subscription has its own tags and those of its document.
func TestTags(t *testing.T) {
	c, err := Parse("vokter.yaml", []byte(`
sinks: {ops: {fake: {url: x}}}
documents:
  - {url: "https://example.com/a", tags: [shop, legal]}
subscriptions:
  - {url: "https://EXAMPLE.com/a", keywords: [k], sinks: [ops], tags: [legal, team-a]}
  - {url: "https://example.com/b", keywords: [k], sinks: [ops]}
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Router.Subscriptions[0].Tags; !slices.Equal(got, []string{"legal", "team-a", "shop"}) {
		t.Errorf("tags %q", got)
	}
	if got := c.Router.Subscriptions[1].Tags; len(got) > 0 {
		t.Errorf("tags %q of another page", got)
	}
	if len(c.Router.Documents) > 0 {
		t.Errorf("an entry with tags alone keeps %v", c.Router.Documents)
	}
}

// TestTagsThatAreRefused: a tag is one word.
func TestTagsThatAreRefused(t *testing.T) {
	for tags, want := range map[string]string{
		"[a b]": "tags[0]: \"a b\" has a blank", "['']": "tags[0] is empty", "[a, a]": "tags[1]: \"a\" is listed twice", "['a,b']": "has a blank, a comma",
	} {
		file := "sinks: {ops: {fake: {url: x}}}\nsubscriptions:\n  - {url: 'https://example.com/a', keywords: [k], sinks: [ops], tags: " + tags + "}\n"
		if _, err := Parse("c.yaml", []byte(file), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", tags, err, want)
		}
	}
}
