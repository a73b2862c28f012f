package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
)

// TestWatchURL: one URL is enough to watch a page. What is watched is the part that the page is about, if it says so.
func TestWatchURL(t *testing.T) {
	const words = "one two three four five six seven eight nine ten"
	for source, part := range map[string]string{
		"<nav>a</nav><main>" + words + "</main><article>" + words + "</article>": "main",
		`<div role="main">` + words + "</div>":                                   `[role="main"]`,
		"<main>Loading</main><article>" + words + "</article>":                   "article",
		"<main><script>" + words + "</script></main><p>" + words:                 "",
		"<p>" + words: "",
	} {
		f := &fake{source: source}
		b := logIn(t, f, aToken)
		r, body := b.post(t, "/do/watch", url.Values{"url": {" example.com/x "}})
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/" || len(f.subscribed) != 1 {
			t.Fatalf("%s: got %s %s", source, r.Status, body)
		}
		s := f.subscribed[0]
		got := ""
		if len(s.Select) > 0 {
			got = s.Select[0].String()
		}
		if s.URL != "https://example.com/x" || s.Client != "default" || len(s.Keywords) > 0 || s.Restless != pipeline.RestlessMute || got != part || len(s.Sinks) != 1 || s.Sinks[0] != config.Inbox {
			t.Errorf("%s: got %+v, want the part %q", source, s, part)
		}
		if _, body := b.get(t, "/"); !strings.Contains(body, "Watching https://example.com/x") {
			t.Errorf("%s: no note in %s", source, body)
		}
	}
}

// TestBelowAPath: behind a proxy that serves the page below a path, links, forms, cookies and redirects have that path,
// whether the proxy leaves it out of its requests or not.
func TestBelowAPath(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, aToken)
	b.settings.Configure(config.Web{PublicURL: "https://example.com/vokter"})
	for _, path := range []string{"/", "/page?url=" + url.QueryEscape(pageURL), "/receivers", "/subscribe", "/changes", "/login"} {
		_, body := b.get(t, path)
		for _, attribute := range []string{` href="/`, ` action="/`, ` src="/`, ` formaction="/`} {
			if n, below := strings.Count(body, attribute), strings.Count(body, attribute+"vokter/"); n != below {
				t.Errorf("%s: %d of %d%s are not below the path", path, n-below, n, attribute)
			}
		}
	}
	r, _ := b.post(t, "/do/check", url.Values{"url": {pageURL}, "back": {"/page?url=x"}})
	if to := r.Header.Get("Location"); to != "/vokter/page?url=x" {
		t.Errorf("an action leads to %s", to)
	}
	for _, c := range r.Cookies() {
		if c.Path != "/vokter/" {
			t.Errorf("the cookie %s is for %s", c.Name, c.Path)
		}
	}
	for path, want := range map[string]string{"/vokter/changes": "/changes", "/vokter/": "/", "/vokter/a%2Fb": "/a/b", "/vokters": "/vokters", "/changes": "/changes"} {
		got := ""
		b.settings.Within(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Path })).ServeHTTP(nil, &http.Request{URL: mustParse(t, path)})
		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func mustParse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
