package web

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
)

const feedSecret = "a-secret-of-the-feed-of-acme"

func feedSettings() config.Web {
	return config.Web{PublicURL: "https://vokter.example.com", Feeds: []config.Feed{
		{Name: "all", Hash: config.HashToken("a-secret-of-the-whole-feed")}, {Name: "acme", Hash: config.HashToken(feedSecret), Client: "acme"},
	}}
}

// TestFeeds: who knows the secret reads the changes, without a login, and those of one client only
// where the feed is for it.
func TestFeeds(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, "")
	b.settings.Configure(feedSettings())
	for _, path := range []string{"/feeds/wrong/atom.xml", "/feeds/" + feedSecret + "/feed.rss", "/feeds/all/atom.xml", "/feeds//atom.xml"} {
		if r, body := b.get(t, path); r.StatusCode != http.StatusNotFound && r.StatusCode != http.StatusTemporaryRedirect || strings.Contains(body, "example.com/?a=1") {
			t.Errorf("%s: got %s %s", path, r.Status, body)
		}
	}
	if len(f.filters) > 0 {
		t.Errorf("the pipeline was asked: %+v", f.filters)
	}
	r, body := b.get(t, "/feeds/"+feedSecret+"/atom.xml")
	var atom atomFeed
	if err := xml.Unmarshal([]byte(body), &atom); err != nil || r.Header.Get("Content-Type") != "application/atom+xml; charset=utf-8" {
		t.Fatalf("got %v %s, %v", r.Header, body, err)
	}
	link := "https://vokter.example.com/diff?document=d1&to=2&url=" + url.QueryEscape(pageURL)
	if len(atom.Entries) != 1 || atom.Updated != "2026-01-31T15:04:05Z" || strings.Contains(body, feedSecret) {
		t.Fatalf("got %s", body)
	}
	if e := atom.Entries[0]; e.ID != "urn:vokter:change:change-1" || e.Title != hostile+": "+hostile || e.Links[0].Href != link || e.Links[1].Href != pageURL ||
		e.Content != "- green tea "+hostile+"\n+ green tea "+hostile+"\n" {
		t.Errorf("got %+v", e)
	}
	if i := slices.IndexFunc(f.filters, func(x inspect.ListFilter) bool {
		return x.Client == "acme" && slices.Equal(x.Clients, []string{"acme"})
	}); i < 0 {
		t.Errorf("the feed of a client asked for %+v", f.filters)
	}
	tag := r.Header.Get("ETag")
	r, body = b.get(t, "/feeds/"+feedSecret+"/atom.xml?tag=spring+sale")
	if !strings.Contains(body, "<id>urn:vokter:feed:acme:tag:spring+sale</id><title>Vokter: acme, spring sale</title>") || !strings.Contains(body, "/changes?tag=spring+sale") || r.Header.Get("ETag") == tag ||
		!slices.ContainsFunc(f.filters, func(x inspect.ListFilter) bool { return x.Tag == "spring sale" && x.Client == "acme" }) {
		t.Errorf("the changes with a tag: got %s %+v", body, f.filters)
	}
	if r, _ := b.send(t, http.MethodGet, "/feeds/"+feedSecret+"/atom.xml", nil, map[string]string{"If-None-Match": tag}); r.StatusCode != http.StatusNotModified {
		t.Errorf("the same feed: got %s", r.Status)
	}
	r, body = b.get(t, "/feeds/a-secret-of-the-whole-feed/feed.json")
	var feed jsonFeed
	if err := json.Unmarshal([]byte(body), &feed); err != nil || r.Header.Get("Content-Type") != "application/feed+json; charset=utf-8" {
		t.Fatalf("got %v %s, %v", r.Header, body, err)
	}
	if len(feed.Items) != 1 || feed.Items[0].URL != link || feed.Items[0].ExternalURL != pageURL || !strings.HasPrefix(feed.Items[0].Title, hostile+": ") {
		t.Errorf("got %+v", feed)
	}
}

// TestProxy: the header of a proxy names the token of the user, if the proxy sent it.
func TestProxy(t *testing.T) {
	b := logIn(t, new(fake), "")
	ask := func(header map[string]string) int {
		t.Helper()
		r, _ := b.send(t, http.MethodGet, "/page?url=https://example.com/", nil, header)
		return r.StatusCode
	}
	as := func(user string) map[string]string { return map[string]string{"X-Forwarded-User": user} }
	if got := ask(as("all")); got != http.StatusUnauthorized {
		t.Errorf("without a proxy in the configuration: got %d", got)
	}
	from := func(prefix string) {
		b.settings.Configure(config.Web{PublicURL: "https://vokter.example.com", Proxy: &config.Proxy{Header: "X-Forwarded-User", From: []netip.Prefix{netip.MustParsePrefix(prefix)}}})
	}
	from("10.0.0.0/8")
	if got := ask(as("all")); got != http.StatusUnauthorized {
		t.Errorf("from another address: got %d", got)
	}
	from("127.0.0.1/32")
	for user, want := range map[string]int{"all": http.StatusOK, "reader": http.StatusOK, "writer": http.StatusForbidden, "nobody": http.StatusForbidden, "": http.StatusUnauthorized} {
		if got := ask(as(user)); got != want {
			t.Errorf("%q: got %d, want %d", user, got, want)
		}
	}
	if got := ask(map[string]string{"X-Forwarded-User": "all", "Host": "vokter.example.com"}); got != http.StatusOK {
		t.Errorf("at the public host: got %d", got)
	}
	if got := ask(map[string]string{"X-Forwarded-User": "all", "Sec-Fetch-Site": "cross-site"}); got != http.StatusOK { // the page that asks again
		t.Errorf("from another web site: got %d", got)
	}
	r, _ := b.send(t, http.MethodPost, "/do/check", url.Values{"url": {pageURL}}, map[string]string{"X-Forwarded-User": "all", "Sec-Fetch-Site": "cross-site"})
	if r.StatusCode != http.StatusForbidden {
		t.Errorf("an action of another web site: got %s", r.Status)
	}
}
