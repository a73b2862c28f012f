package router_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// partFetcher fetches the pages over http whose URLs contain part, and hands the others over.
type partFetcher struct {
	part  string
	mu    sync.Mutex
	asked []string
}

func (*partFetcher) Schemes() []string { return []string{"http"} }

func (f *partFetcher) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.URL)
	if !strings.Contains(r.URL, f.part) {
		return r.Next.Fetch(ctx, r)
	}
	return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailRefused, Reason: "fetched for " + f.part}
}

func (f *partFetcher) Gauges() []flow.Gauge {
	return []flow.Gauge{{Name: "pages_of_" + f.part, Value: 1}}
}

// TestFetchersHandOn: a Fetcher gives the pages that it does not fetch to the one before it, and that one to the
// built-in one.
func TestFetchersHandOn(t *testing.T) {
	s := newSite(t, "<p>stock: one</p>")
	first, last := &partFetcher{part: "first"}, &partFetcher{part: "last"}
	cfg := vokter.Config{Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Rate: 1000}, Fetchers: []pipeline.Fetcher{first, last}}
	for _, path := range []string{"/plain", "/first", "/last"} {
		cfg.Documents = append(cfg.Documents, vokter.Document{URL: s.URL + path, Keep: true})
	}
	r, stop := startRouter(t, cfg)
	defer stop()
	for path, want := range map[string]string{"/plain": "", "/first": "fetched for first", "/last": "fetched for last"} {
		p, err := r.Preview(t.Context(), pipeline.Subscription{URL: s.URL + path}, false)
		if err != nil && want == "" || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %+v, %v, want %q", path, p, err, want)
		}
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	if slices.Contains(first.asked, s.URL+"/last") || !slices.Contains(first.asked, s.URL+"/plain") {
		t.Errorf("the first fetcher was asked for %v", first.asked)
	}
	var named []string
	for _, g := range r.Gauges() {
		if strings.HasPrefix(g.Name, "pages_of_") {
			named = append(named, g.Name)
		}
	}
	if want := []string{"pages_of_first", "pages_of_last"}; !slices.Equal(named, want) {
		t.Errorf("got the gauges %v, want %v", named, want)
	}
}
