package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/route"
)

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
