package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var treeNow = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const linkSite = "http://example.com"

// crawl makes the pages of t report the links that the site has, until nothing changes. It returns how
// many reports were made.
func crawl(t *tree, links func(path string) []string) int {
	reports := 0
	todo := []string{t.root}
	for len(todo) > 0 && reports < 100_000 {
		page := todo[0]
		todo = todo[1:]
		if t.pages[page] == nil {
			continue
		}
		reports++
		l := flow.Links{At: page}
		for _, path := range links(strings.TrimPrefix(page, linkSite)) {
			if strings.HasPrefix(path, "/") {
				path = linkSite + path
			}
			l.URLs = append(l.URLs, path)
		}
		t.storeLinks(page, l)
		c := t.grow(treeNow)
		todo = append(todo, c.Begun...)
		todo = append(todo, c.Moved...)
	}
	return reports
}

func followTree(f pipeline.Follow) *tree {
	return newTree(linkSite+"/", treeState{Subscription: pipeline.Subscription{Follow: &f}}, nil)
}

// paths are the followed pages of t, without the host of the site.
func paths(t *tree) string {
	var all []string
	for url, p := range t.pages {
		if url != t.root {
			all = append(all, fmt.Sprintf("%s:%d", strings.TrimPrefix(url, linkSite), p.Depth))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func fixed(links map[string]string) func(string) []string {
	return func(path string) []string { return strings.Fields(links[path]) }
}

func TestTreeFollowsTheShortestPathsUpToItsDepth(t *testing.T) {
	// c is two links away through a, and three through b; the links go in circles.
	links := fixed(map[string]string{"/": "/a /b /", "/a": "/c /", "/b": "/d /b", "/d": "/c /e", "/c": "/a /f", "/f": "/g"})
	for depth, want := range []string{1: "/a:1 /b:1", 2: "/a:1 /b:1 /c:2 /d:2", 3: "/a:1 /b:1 /c:2 /d:2 /e:3 /f:3"} {
		if depth == 0 {
			continue
		}
		tr := followTree(pipeline.Follow{Depth: depth})
		crawl(tr, links)
		if got := paths(tr); got != want {
			t.Errorf("depth %d: got %s, want %s", depth, got, want)
		}
	}
}

// calendar links each month to the next one and to the next decade, without end.
func calendar(path string) []string {
	var n int
	if _, err := fmt.Sscanf(path, "/cal/%d", &n); err != nil {
		return []string{"/cal/1", "/page"}
	}
	return []string{"/", fmt.Sprintf("/cal/%d", n+1), fmt.Sprintf("/cal/%d", n+120)}
}

func TestTreeStopsInATrap(t *testing.T) {
	tr := followTree(pipeline.Follow{Depth: 10, MaxPages: 20})
	if n := crawl(tr, calendar); n > 100 {
		t.Errorf("%d reports were made for 20 pages", n)
	}
	if n := len(tr.pages) - 1; n != 20 {
		t.Errorf("%d pages are followed, want 20", n)
	}
	if tr.pages[linkSite+"/page"] == nil {
		t.Error("a page that is one link away is not followed")
	}
	if !strings.Contains(tr.Bounded, "max_pages") {
		t.Errorf("the bound is %q", tr.Bounded)
	}
	if c := tr.grow(treeNow); c.Bounded || len(c.Begun)+len(c.Ended) > 0 {
		t.Errorf("without a change it changes again: %+v", c)
	}
}

func TestTreeShrinksWithMaxPages(t *testing.T) {
	tr := followTree(pipeline.Follow{Depth: 2, MaxPages: 5})
	links := map[string]string{"/": "/a /b /c", "/a": "/d /e"}
	crawl(tr, fixed(links))
	if got, want := paths(tr), "/a:1 /b:1 /c:1 /d:2 /e:2"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	tr = newTree(tr.root, treeState{Subscription: pipeline.Subscription{Follow: &pipeline.Follow{Depth: 2, MaxPages: 2}}}, tr.pages)
	tr.pages[tr.root].URLs = tr.pages[tr.root].URLs[1:] // and a page is further away now
	tr.pages[linkSite+"/b"].URLs = []string{linkSite + "/a"}
	tr.pages[linkSite+"/b"].Known = true
	c := tr.grow(treeNow)
	if got, want := paths(tr), "/b:1 /c:1"; got != want || len(c.Ended) != 3 || len(c.Depths) != 0 || !c.Bounded {
		t.Errorf("got %s, want %s; changes %+v", got, want, c)
	}
}

func TestTreeOfAMillionLinksIsBounded(t *testing.T) {
	tr := followTree(pipeline.Follow{Depth: 3, MaxPages: 10})
	wide := func(string) (all []string) {
		for i := range flow.MaxLinks {
			all = append(all, fmt.Sprintf("/p%d", i))
		}
		return all
	}
	crawl(tr, wide)
	if n := len(tr.pages) - 1; n != 10 || tr.Bounded == "" {
		t.Errorf("%d pages, bound %q", n, tr.Bounded)
	}
}

func TestTreeWhosePagesChangeWithEveryCheckComesToRest(t *testing.T) {
	tr := followTree(pipeline.Follow{MaxPages: 5})
	begun, bounded := 0, 0
	round := func(i int, at time.Time) {
		var l flow.Links
		for k := range 5 {
			l.URLs = append(l.URLs, fmt.Sprintf("%s/?visit=%d-%d", linkSite, i, k))
		}
		tr.storeLinks(tr.root, l)
		c := tr.grow(at)
		begun += len(c.Begun)
		if c.Bounded {
			bounded++
		}
	}
	for i := range 100 {
		round(i, treeNow.Add(time.Duration(i)*time.Minute))
	}
	if begun != maxTurnover*5 || bounded != 1 || !strings.Contains(tr.Bounded, "too fast") {
		t.Errorf("%d pages began, the bound was reported %d times: %q", begun, bounded, tr.Bounded)
	}
	round(100, treeNow.Add(treeDay+time.Hour))
	if begun != (maxTurnover+1)*5 {
		t.Errorf("%d pages began after a day", begun)
	}
}

func TestTreeFollowsTheRulesForURLs(t *testing.T) {
	links := fixed(map[string]string{"/": "/news/1 /news/2?sort=up /login http://other.example/news/3 https://example.com/news/4 http://example.com:8080/news/5"})
	elsewhere := false
	for _, c := range []struct {
		follow pipeline.Follow
		want   string
	}{
		{pipeline.Follow{}, "/login:1 /news/1:1 /news/2?sort=up:1 https://example.com/news/4:1"},
		{pipeline.Follow{Include: []string{"/news/"}, Exclude: []string{`[?&]sort=`}}, "/news/1:1 https://example.com/news/4:1"},
		{pipeline.Follow{SameHost: &elsewhere, Exclude: []string{"example[.]com/"}}, ":8080/news/5:1 http://other.example/news/3:1"},
	} {
		tr := followTree(c.follow)
		crawl(tr, links)
		if got := paths(tr); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.follow, got, c.want)
		}
	}
}

func TestTreeFollowsTheHostThatTheRootRedirectsTo(t *testing.T) {
	tr := followTree(pipeline.Follow{})
	tr.storeLinks(tr.root, flow.Links{At: "http://www.example.com/", URLs: []string{"http://www.example.com/a", "http://other.example/"}})
	if c := tr.grow(treeNow); fmt.Sprint(c.Begun) != "[http://www.example.com/a]" {
		t.Errorf("followed: %v", c.Begun)
	}
}
