package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sources/browser"
)

// browserFile is a file with these fields in its subscriptions of one page.
func browserFile(top string, fields ...string) []byte {
	b := "sinks: {out: {fake: {url: x}}}\n" + top + "\nsubscriptions:\n"
	for _, f := range fields {
		b += "- {url: 'https://example.com/', client: '" + f[:1] + f[len(f)-3:len(f)-2] + "', sinks: [out], " + f + "}\n"
	}
	return []byte(b)
}

func TestBrowser(t *testing.T) {
	steps := "steps: [{fill: {select: '#p', value: tops3cret}}, {scroll: 2}]"
	c, err := Parse("c.yaml", browserFile("browser: {tabs: 3, memory: 512MiB, timeout: 20s, screenshots: true}", "fetch: browser, "+steps), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	b := c.Browser.Config()
	p := b.Pages["https://example.com/"]
	if b.Tabs != 3 || !b.Screenshots || b.Memory != 512<<20 || p.Mode != browser.Rendered || len(p.Steps) != 2 || p.Steps[0].Fill.Value != registry.NewSecret("tops3cret") && p.Steps[0].Fill.Value.Reveal() != "tops3cret" {
		t.Errorf("got %+v", b)
	}
	for want, fields := range map[string][]string{
		`subscriptions[0].fetch: "chrome" is not known`:                    {"fetch: chrome"},
		"subscriptions[0].steps: they need the browser":                    {steps},
		"subscriptions[0].steps[0]: it has 2 of":                           {"fetch: browser, steps: [{click: a, scroll: 1}]"},
		"subscriptions[1].fetch: subscriptions[0] fetches this page in an": {"fetch: browser, confirm: 1", "fetch: auto, confirm: 2"},
		"browser.tabs: 65 is not between":                                  nil,
	} {
		top := ""
		if fields == nil {
			top, fields = "browser: {tabs: 65}", []string{"fetch: auto"}
		}
		if _, err := Parse("c.yaml", browserFile(top, fields...), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestScreenshotsWithoutBrowser warns that no page is opened in the browser.
func TestScreenshotsWithoutBrowser(t *testing.T) {
	for fetch, want := range map[string]bool{"http": true, "browser": false, "auto": false} {
		c, err := Parse("c.yaml", browserFile("browser: {screenshots: true}", "fetch: "+fetch), fakeOptions(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(fmt.Sprint(c.Warnings), "no page has screenshots"); got != want {
			t.Errorf("fetch: %s: got %v", fetch, c.Warnings)
		}
	}
}
