package router_test

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// sitemapSite is a site of 300 pages. Its sitemap index /index.xml lists /one.xml, which lists pages 0 to
// 149, /two.xml.gz, which lists pages 150 to 299, and a sitemap that robots.txt forbids.
type sitemapSite struct {
	*httptest.Server
	mu    sync.Mutex
	gets  map[string]int
	words map[string]string // further text of a page
	gone  map[string]bool   // pages that left their sitemap
	also  string            // a page that the first sitemap lists as well
	index string            // in place of the index
	date  map[string]string // the lastmod of a page
}

func newSitemapSite(t *testing.T) *sitemapSite {
	m := &sitemapSite{gets: map[string]int{}, words: map[string]string{}, gone: map[string]bool{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.gets[r.URL.Path]++
		switch path := r.URL.Path; path {
		case "/robots.txt":
			fmt.Fprint(rw, "User-agent: *\nDisallow: /private\n")
		case "/index.xml":
			if m.index != "" {
				fmt.Fprint(rw, m.index)
				return
			}
			rw.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(rw, "<sitemapindex>")
			for _, name := range []string{"one.xml", "two.xml.gz", "private.xml"} {
				fmt.Fprintf(rw, "<sitemap><loc>%s/%s</loc></sitemap>", m.URL, name)
			}
			fmt.Fprint(rw, "</sitemapindex>")
		case "/one.xml":
			rw.Header().Set("Content-Type", "text/xml")
			fmt.Fprint(rw, strings.Replace(m.urlset(0, 150), "</urlset>", "<url><loc>"+m.also+"</loc></url></urlset>", 1))
		case "/two.xml.gz":
			rw.Header().Set("Content-Type", "application/x-gzip")
			z := gzip.NewWriter(rw)
			fmt.Fprint(z, m.urlset(150, 300))
			z.Close()
		default:
			fmt.Fprintf(rw, "<p>This is %s %s <a href=/p/0>first</a>", path, m.words[path])
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *sitemapSite) urlset(from, to int) string {
	var b strings.Builder
	b.WriteString("<urlset>")
	for n := from; n < to; n++ {
		if path := fmt.Sprintf("/p/%d", n); !m.gone[path] {
			fmt.Fprintf(&b, "<url><loc>%s%s</loc><lastmod>%s</lastmod></url>", m.URL, path, cmp.Or(m.date[path], "2026-01-01"))
		}
	}
	return b.String() + "</urlset>"
}

// pages calls f while no page is answered, and returns how many pages, without the sitemaps, were
// fetched once since the last call, and how many more than once.
func (m *sitemapSite) pages(f func()) (once, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, n := range m.gets {
		switch {
		case !strings.HasPrefix(path, "/p/"):
		case n == 1:
			once++
		default:
			more++
		}
	}
	m.gets = map[string]int{}
	f()
	return once, more
}

func sitemapConfig(m *sitemapSite, box *mailbox, dir string, f *pipeline.Follow) vokter.Config {
	cfg := watchConfig(&site{Server: m.Server}, box, dir, "argus")
	cfg.Subscriptions[0].URL, cfg.Subscriptions[0].Sitemap, cfg.Subscriptions[0].Follow = m.URL+"/index.xml", true, f
	return cfg
}

func addresses(m *sitemapSite, ns []pipeline.Notification) string {
	var all []string
	for _, n := range ns {
		all = append(all, n.Status+" "+strings.TrimPrefix(n.URL, m.URL))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestThePagesOfASitemapAreWatched(t *testing.T) {
	t.Parallel()
	m, box, ops, dir := newSitemapSite(t), newMailbox(), newMailbox(), t.TempDir()
	cfg := sitemapConfig(m, box, dir, nil)
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	runToEnd(t, cfg)
	once, more := m.pages(func() { m.words["/p/7"], m.words["/p/299"] = "argus", "argus" })
	if once != 300 || more != 0 {
		t.Fatalf("%d pages were fetched once and %d more often, want 300 once", once, more)
	}
	runToEnd(t, cfg)
	if got := addresses(m, box.take()); got != "ok /p/299, ok /p/7" {
		t.Errorf("notifications: %q", got)
	}

	// A page leaves the sitemap, and another one comes: neither is news.
	m.pages(func() { m.gone["/p/7"], m.also = true, "/p/argus" })
	runToEnd(t, cfg)
	m.pages(func() { m.words["/p/7"], m.words["/p/argus"] = "", "more" })
	runToEnd(t, cfg)
	if m.gets["/private.xml"] > 0 || m.gets["/p/7"] > 0 || m.gets["/p/argus"] != 1 {
		t.Errorf("fetched what robots.txt forbids, or what left: %v", m.gets)
	}
	if once, more := m.pages(func() {}); once != 300 || more != 0 {
		t.Errorf("%d pages were fetched once and %d more often, want 300 once", once, more)
	}
	if got := addresses(m, box.take()); got != "" {
		t.Errorf("notifications: %q", got)
	}
	if got := eventsSentTo(ops, pipeline.HealthFollowBounded); len(got) != 0 {
		t.Errorf("health events: %+v", got)
	}

	// While the index cannot be read, or lists nothing, its pages stay.
	for page, index := range map[string]string{"/p/9": "<p>Argus is being maintained", "/p/10": "<urlset/>"} {
		m.pages(func() { m.index, m.words[page] = index, "argus" })
		runToEnd(t, cfg)
		if got := addresses(m, box.take()); got != "ok "+page {
			t.Errorf("notifications: %q", got)
		}
	}
	cfg.Subscriptions = nil
	runToEnd(t, cfg)
	m.pages(func() {})
	runToEnd(t, cfg)
	if once, more := m.pages(func() {}); once+more > 0 {
		t.Errorf("%d pages were fetched after the end", once+more)
	}
}

func TestTheSitemapStopsAtItsBound(t *testing.T) {
	m, box, ops := newSitemapSite(t), newMailbox(), newMailbox()
	cfg := sitemapConfig(m, box, t.TempDir(), &pipeline.Follow{MaxPages: 20, Include: []string{"/p/1"}, Exclude: []string{"/p/1.$"}})
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	for range 2 {
		runToEnd(t, cfg)
		if once, more := m.pages(func() {}); once != 20 || more != 0 {
			t.Errorf("%d pages were fetched once and %d more often, want 20 once", once, more)
		}
	}
	if got := eventsSentTo(ops, pipeline.HealthFollowBounded); len(got) != 1 || got[0].URL != m.URL+"/index.xml" || !strings.Contains(got[0].Reason, "max_pages: 20 are watched") {
		t.Errorf("health events: %+v", got)
	}
}

// TestTheRulesOfASitemapChange has rules admit pages that no sitemap listed for the rules before.
func TestTheRulesOfASitemapChange(t *testing.T) {
	t.Parallel()
	m, box, dir := newSitemapSite(t), newMailbox(), t.TempDir()
	for _, of := range []struct {
		follow *pipeline.Follow
		want   int
	}{
		{&pipeline.Follow{MaxPages: 20}, 20}, {&pipeline.Follow{MaxPages: 170}, 170}, {nil, 300},
		{&pipeline.Follow{Include: []string{"/p/2.$"}}, 10}, {&pipeline.Follow{Include: []string{"/p/2..$"}}, 100},
	} {
		runToEnd(t, sitemapConfig(m, box, dir, of.follow)) // the change is told, and its pages come and go
		m.pages(func() {})
		runToEnd(t, sitemapConfig(m, box, dir, of.follow))
		if once, more := m.pages(func() {}); once != of.want || more != 0 {
			t.Errorf("%+v: %d pages were fetched once and %d more often, want %d once", of.follow, once, more, of.want)
		}
	}
	if got := addresses(m, box.take()); got != "" {
		t.Errorf("notifications: %q", got)
	}
}

func TestASitemapOfOtherHostsIsReported(t *testing.T) {
	m, box, ops := newSitemapSite(t), newMailbox(), newMailbox()
	m.index = "<urlset><url><loc>http://other.invalid/</loc></url></urlset>"
	cfg := sitemapConfig(m, box, t.TempDir(), nil)
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthFollowBounded); len(got) != 1 || !strings.Contains(got[0].Reason, "none of the URLs that the sitemap lists (1)") {
		t.Errorf("health events: %+v", got)
	}
}

// TestALaterLastmodIsCheckedAtOnce watches the pages of a sitemap once a day.
func TestALaterLastmodIsCheckedAtOnce(t *testing.T) {
	m, box := newSitemapSite(t), newMailbox()
	cfg := sitemapConfig(m, box, t.TempDir(), &pipeline.Follow{Include: []string{"/p/[1-4]$"}})
	cfg.Subscriptions[0].URL = m.URL + "/one.xml"
	cfg.Subscriptions[0].Interval = pipeline.Every(24 * time.Hour)
	cfg.Checks, cfg.Every = 0, nil
	r, stop := startRouter(t, cfg)
	defer stop()
	fetched := func(path string, n int) func() bool {
		return func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.gets[path] == n
		}
	}
	for _, path := range []string{"/p/1", "/p/2", "/p/3", "/p/4"} {
		waitFor(t, "the first check of "+path, fetched(path, 1))
	}
	m.pages(func() {
		m.words["/p/2"], m.words["/p/3"] = "argus", "argus"
		m.date = map[string]string{"/p/1": "2026-02-01", "/p/2": "2999-01-01T12:00:00Z", "/p/3": "2999-02-01", "/p/4": "soon"}
	})
	if err := r.CheckNow(t.Context(), m.URL+"/one.xml"); err != nil {
		t.Fatal(err)
	}
	<-box.arrived
	<-box.arrived
	if got := addresses(m, box.take()); got != "ok /p/2, ok /p/3" {
		t.Errorf("notifications: %q", got)
	}
	if !fetched("/p/1", 0)() || !fetched("/p/4", 0)() {
		t.Error("pages were checked that were not modified")
	}
	if _, more := m.pages(func() {}); more > 0 {
		t.Errorf("%d pages were checked more than once", more)
	}
}
