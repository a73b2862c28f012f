package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/sources/browser"
	httpsource "github.com/vokter/vokter/sources/http"
)

// convertBrowser checks and converts what f says about the browser. A page is fetched once for all its
// subscriptions, so those that say how must agree. It returns nil after a mistake.
func (d *decoder) convertBrowser(f *yamlFile) *browser.Fetcher {
	c := f.Browser
	c.Allow, c.UserAgent = f.Allow.Fetch, cmp.Or(f.Fetch.UserAgent, httpsource.DefaultUserAgent(vokter.Version()))
	d.failEach("browser", c.Check())
	from := make(map[string]string) // paths, by page
	add := func(path, url string, p browser.Page) {
		d.failEach(path, p.Check())
		page, err := pageurl.Canonical(url)
		if err != nil || p.Mode == "" && p.Steps == nil {
			return // an error is reported elsewhere
		}
		other, found := c.Pages[page]
		if found && !reflect.DeepEqual(p, other) {
			at := path + ".fetch"
			d.failPath(at, "%s: %s fetches this page in another way, and it is fetched once for all; write the same fetch and steps, or leave them out here", at, from[page])
			return
		}
		if c.Pages == nil {
			c.Pages = make(map[string]browser.Page)
		}
		c.Pages[page], from[page] = p, path
	}
	for i, y := range f.Subscriptions {
		add(fmt.Sprintf("subscriptions[%d]", i), y.URL, browser.Page{Mode: y.Fetch, Steps: y.Steps})
	}
	for i, y := range f.Documents {
		add(fmt.Sprintf("documents[%d]", i), y.URL, browser.Page{Mode: y.Fetch, Steps: y.Steps})
	}
	d.warnOfBrowser(c)
	fetcher, err := browser.New(c)
	if err != nil {
		return nil // Check has said why
	}
	return fetcher
}

// warnOfBrowser warns where the pages of c that need the browser cannot be opened.
func (d *decoder) warnOfBrowser(c browser.Config) {
	needed := slices.ContainsFunc(slices.Collect(maps.Values(c.Pages)), browser.Page.NeedsBrowser)
	if c.Screenshots && !needed {
		d.warnAt(d.positionOfPath("browser.screenshots"), "no page has screenshots, because none is opened in the browser; add fetch: browser to a subscription or document")
	}
	if err := c.Ready(); needed && err != nil {
		d.warnAt(d.positionOfPath("browser"), "the checks of pages with fetch: browser or auto will fail: %v", err)
	}
}
