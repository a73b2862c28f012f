package router_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// linkedSite is a site of 50 pages, /p/0 to /p/49, of which page n links to 4n+1 to 4n+4, to the page before
// it and to the first page. The first page also links to a calendar without end, to a page that
// robots.txt forbids, to one that redirects to such a page, and to one that does not exist.
type linkedSite struct {
	*httptest.Server
	mu    sync.Mutex
	gets  map[string]int
	words map[string]string   // further text of a page
	cut   map[string]string   // a link that is missing in a page
	gone  map[string]struct{} // pages that do not exist any more
	walls map[string]struct{} // pages in place of which a challenge is shown
}

func newLinkedSite(t *testing.T) *linkedSite {
	w := &linkedSite{gets: map[string]int{}, words: map[string]string{}, cut: map[string]string{}, gone: map[string]struct{}{}, walls: map[string]struct{}{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		path := r.URL.Path
		w.gets[path]++
		links := w.links(path)
		if path == "/away" {
			http.Redirect(rw, r, "/private/y", http.StatusFound)
			return
		}
		if _, gone := w.gone[path]; gone || links == nil {
			if path == "/robots.txt" {
				fmt.Fprint(rw, "User-agent: *\nDisallow: /private\n")
				return
			}
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		if _, wall := w.walls[path]; wall {
			fmt.Fprint(rw, "<p>Just a moment... We are checking your browser.</p>")
			return
		}
		fmt.Fprintf(rw, "<p>This is %s %s</p>", path, w.words[path])
		for _, l := range links {
			if l != w.cut[path] {
				fmt.Fprintf(rw, `<a href="%s#top">%s</a> `, l, l)
			}
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// links returns where the page links to, nil where there is none.
func (w *linkedSite) links(path string) []string {
	if month, ok := strings.CutPrefix(path, "/cal/"); ok {
		n, _ := strconv.Atoi(month)
		return []string{fmt.Sprintf("/cal/%d", n+1), fmt.Sprintf("/cal/%d", n+1000)}
	}
	number, ok := strings.CutPrefix(path, "/p/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n >= 50 {
		return nil
	}
	all := []string{"/p/0", fmt.Sprintf("/p/%d", max(n-1, 0))}
	for k := 4*n + 1; k <= 4*n+4 && k < 50; k++ {
		all = append(all, fmt.Sprintf("/p/%d", k))
	}
	if n == 0 {
		all = append(all, "/cal/1", "/private/x", "/missing", "/away")
	}
	return all
}

// update calls f while no page is answered, and returns how often each page was fetched since the
// last call.
func (w *linkedSite) update(f func()) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	gets := w.gets
	w.gets = map[string]int{}
	return gets
}

// followConfig is a Config that follows the links of the first page of w.
func followConfig(w *linkedSite, box *mailbox, dir string, f pipeline.Follow) vokter.Config {
	cfg := watchConfig(&site{Server: w.Server}, box, dir, "argus")
	cfg.Subscriptions[0].URL = w.URL + "/p/0"
	cfg.Subscriptions[0].Follow = &f
	return cfg
}

// urls returns the pages of the notifications that came.
func urls(w *linkedSite, ns []pipeline.Notification) string {
	var all []string
	for _, n := range ns {
		all = append(all, n.Status+" "+strings.TrimPrefix(n.URL, w.URL))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestLinkedPagesAreWatched(t *testing.T) {
	w, box, ops, dir := newLinkedSite(t), newMailbox(), newMailbox(), t.TempDir()
	cfg := followConfig(w, box, dir, pipeline.Follow{Depth: 3, MaxPages: 60})
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	runToEnd(t, cfg)
	want := map[string]int{"/robots.txt": 1, "/missing": 1, "/away": 1}
	for n := range 50 {
		want[fmt.Sprintf("/p/%d", n)] = 1
	}
	for _, month := range []int{1, 2, 3, 1001, 1002, 2001} { // three links away
		want[fmt.Sprintf("/cal/%d", month)] = 1
	}
	for round := range 3 {
		got := w.update(func() { w.words["/p/22"] = strings.Repeat("argus ", round+1) })
		if !maps.Equal(got, want) {
			t.Fatalf("round %d: fetched %v, want %v", round, got, want)
		}
		runToEnd(t, cfg)
		if got := urls(w, box.take()); got != "ok /p/22" {
			t.Errorf("round %d: notifications %q, want one about /p/22", round, got)
		}
	}
	if got := ops.take(); len(got) != 0 {
		t.Errorf("health events: %+v", got)
	}
}

func TestLinkedPagesStopAtTheirBound(t *testing.T) {
	w, box, ops := newLinkedSite(t), newMailbox(), newMailbox()
	cfg := followConfig(w, box, t.TempDir(), pipeline.Follow{Depth: 10, MaxPages: 5, Include: []string{"/cal/"}})
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	for range 3 {
		runToEnd(t, cfg)
		got := w.update(func() {})
		if len(got) != 7 { // the root, robots.txt and five pages
			t.Errorf("fetched %v, want 5 pages of the calendar", got)
		}
	}
	if got := eventsSentTo(ops, pipeline.HealthFollowBounded); len(got) != 1 || got[0].URL != w.URL+"/p/0" || !strings.Contains(got[0].Reason, "max_pages") {
		t.Errorf("health events: %+v", got)
	}
}

// TestAReplacedPageKeepsItsLinks: what looks like an error page or a challenge in place of a page does
// not end the pages that the page links to. Otherwise each would begin with a new baseline afterwards,
// and what changed in between would be lost.
func TestAReplacedPageKeepsItsLinks(t *testing.T) {
	w, box, dir := newLinkedSite(t), newMailbox(), t.TempDir()
	cfg := followConfig(w, box, dir, pipeline.Follow{Depth: 1, Include: []string{"/p/1$"}})
	cfg.Subscriptions[0].Replaced = true
	runToEnd(t, cfg)
	w.update(func() { w.walls["/p/0"] = struct{}{} })
	runToEnd(t, cfg)
	if got := w.update(func() { delete(w.walls, "/p/0"); w.words["/p/1"] = "argus" }); got["/p/1"] != 1 {
		t.Errorf("fetched %v, want /p/1", got)
	}
	runToEnd(t, cfg)
	runToEnd(t, cfg)
	if got := urls(w, box.take()); got != "ok /p/1" {
		t.Errorf("notifications: %q, want one about /p/1", got)
	}
}

// TestALinkedPageThatWasNeverReadDoesNotRecover: nobody was told that it fails.
func TestALinkedPageThatWasNeverReadDoesNotRecover(t *testing.T) {
	t.Parallel()
	w, box, ops := newLinkedSite(t), newMailbox(), newMailbox()
	cfg := followConfig(w, box, t.TempDir(), pipeline.Follow{Depth: 1, Include: []string{"/p/1$"}})
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	w.update(func() { w.gone["/p/1"] = struct{}{} })
	for range 4 {
		runToEnd(t, cfg)
	}
	w.update(func() { clear(w.gone) })
	runToEnd(t, cfg)
	if got := ops.take(); len(got) != 0 {
		t.Errorf("health events: %+v", got)
	}
	w.update(func() { w.words["/p/1"] = "argus" })
	runToEnd(t, cfg)
	if got := urls(w, box.take()); got != "ok /p/1" {
		t.Errorf("notifications: %q, want one about /p/1", got)
	}
}

func TestALinkedPageThatIsGoneExpiresAlone(t *testing.T) {
	w, box, dir := newLinkedSite(t), newMailbox(), t.TempDir()
	cfg := followConfig(w, box, dir, pipeline.Follow{Depth: 1})
	cfg.Expire.After, cfg.Expire.Retry = 2, -1
	runToEnd(t, cfg)
	w.update(func() { w.gone["/p/2"] = struct{}{} })
	runToEnd(t, cfg)
	runToEnd(t, cfg)
	// The pages that could never be read say nothing.
	if got := urls(w, box.take()); got != "timeout /p/2" {
		t.Errorf("notifications: %q, want the timeout of /p/2", got)
	}
	w.update(func() { w.words["/p/0"], w.words["/p/3"] = "argus", "argus" })
	runToEnd(t, cfg)
	if got := urls(w, box.take()); got != "ok /p/0, ok /p/3" {
		t.Errorf("notifications: %q", got)
	}
	if got := w.update(func() {}); got["/p/2"] != 0 || got["/missing"] != 0 {
		t.Errorf("fetched %v, want no page that expired", got)
	}
}

func TestLinkedPagesAreListedAndNotCancelledAlone(t *testing.T) {
	w, box, dir := newLinkedSite(t), newMailbox(), t.TempDir()
	cfg := followConfig(w, box, dir, pipeline.Follow{Depth: 2, Include: []string{"/p/[159]$"}})
	runToEnd(t, cfg)
	cfg.Checks, cfg.Every = 0, nil
	r, stop := startRouter(t, cfg)
	defer stop()
	l, err := r.List(t.Context(), inspect.ListFilter{Tree: true})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range l.Pages {
		for _, s := range p.Subscriptions {
			for _, linked := range s.Linked {
				lines = append(lines, fmt.Sprintf("%s>%s %d", linked.From, linked.URL, linked.Depth))
			}
			if s.FollowedFrom != "" {
				lines = append(lines, p.URL+" from "+s.FollowedFrom)
			}
		}
	}
	want := "/p/0>/p/1 1, /p/1>/p/5 2, /p/1 from /p/0, /p/5 from /p/0"
	if got := strings.ReplaceAll(strings.Join(lines, ", "), w.URL, ""); got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	refusal := new(flow.Refusal)
	if err := r.Cancel(t.Context(), w.URL+"/p/1", ""); !errors.As(err, &refusal) || !strings.Contains(err.Error(), w.URL+"/p/0 links to it") {
		t.Errorf("cancelling a linked page: %v", err)
	}
	if err := r.Cancel(t.Context(), w.URL+"/p/0", ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of all pages", func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		return err == nil && len(l.Pages) == 0
	})
}
