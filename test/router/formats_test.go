package router_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
)

// sequenceFetcher fetches a page whose body is the next one each time.
type sequenceFetcher struct {
	contentType string
	bodies      []string
	n           atomic.Int64
}

func (*sequenceFetcher) Schemes() []string { return []string{"http"} }

func (s *sequenceFetcher) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	body := s.bodies[min(int(s.n.Add(1)), len(s.bodies))-1]
	header := http.Header{}
	if s.contentType != "" {
		header.Set("Content-Type", s.contentType)
	}
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestFormats: a keyword that comes is reported of a page in each format, with its content type.
func TestFormats(t *testing.T) {
	for name, tc := range map[string]struct{ contentType, before, after, sel, wantType, want string }{
		"JSON":              {"application/json", `{"a": "x"}`, `{"a": "Argus"}`, "", "application/json", "a: Argus"},
		"a kind of JSON":    {"application/vnd.x+json; charset=utf-8", `{"a": "x"}`, `{"a": "Argus"}`, "/a", "application/vnd.x+json", "Argus"},
		"jq":                {"application/json", `[{"a": "x"}]`, `[{"a": "Argus"}]`, "jq:.[].a", "application/json", "Argus"},
		"JSON as HTML":      {"text/html", `{"a": "x"}`, `{"a": "Argus"}`, "", "application/json", "a: Argus"},
		"a file":            {"application/octet-stream", `<rss><channel><title>x</title></channel></rss>`, `<rss><channel><title>x</title><item><title>Argus</title></item></channel></rss>`, "", "application/rss+xml", "Argus"},
		"no type":           {"", "BEGIN:VCALENDAR\nSUMMARY:x\nEND:VCALENDAR", "BEGIN:VCALENDAR\nSUMMARY:Argus\nEND:VCALENDAR", "", "text/calendar", "Argus"},
		"a kind of XML":     {"application/vnd.x+xml", "<a><b>x</b></a>", "<a><b>Argus</b></a>", "//b", "application/vnd.x+xml", "Argus"},
		"CSV":               {"text/csv", "a,b\n", "a,Argus\n", "", "text/csv", "a · Argus"},
		"Markdown":          {"text/markdown", "- x", "- *Argus*", "em, li", "text/markdown", "Argus"},
		"text of any kind":  {"text/x-log", "x\ny\n", "x\nArgus\n", "lines:2-", "text/x-log", "Argus"},
		"Shift_JIS in HTML": {"text/html; charset=shift_jis", "<p>\x93\xfa</p>", "<p>\x93\xfa</p><p>Argus\x8c\xa9</p>", "", "text/html", "Argus見"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox()
			cfg := watchConfig(newSite(t, ""), m, "", "Argus")
			cfg.Readers = []pipeline.Reader{markdown.New()}
			cfg.Fetchers = []pipeline.Fetcher{&sequenceFetcher{contentType: tc.contentType, bodies: []string{tc.before, tc.after}}}
			if tc.sel != "" {
				cfg.Subscriptions[0].Select = []pipeline.Selector{pipeline.ParseSelector(tc.sel)}
			}
			cfg.Checks = 2
			runToEnd(t, cfg)
			got := m.take()
			if len(got) != 1 || got[0].ContentType != tc.wantType || got[0].Diffs[0].Snippet != tc.want {
				t.Errorf("got %+v, want %q in %s", got, tc.want, tc.wantType)
			}
		})
	}
}

// TestFeed watches the items of a feed in one run after the other.
func TestFeed(t *testing.T) {
	t.Parallel()
	box, s, dir := newMailbox(), newSite(t, ""), t.TempDir()
	for _, c := range []struct{ items, want string }{
		{"1=Argus 2=two", ""},
		{"2=two 1=Argus", ""},
		{"2=two", ""},
		{"1=Argus 2=two", ""},
		{"3=Argus 1=Argus 2=two", "added argus"},
		{"3=Argus 1=none", "removed argus"},
		{"3=Argus 1=none", ""},
		{"4=Argus", "added argus"},
		{"", ""},
		{"4=Argus 3=Argus 1=none", ""},
		{"4=Argus 3=none 1=none", "removed argus"},
	} {
		var body strings.Builder
		body.WriteString("<rss><channel><title>News</title>")
		for item := range strings.FieldsSeq(c.items) {
			guid, text, _ := strings.Cut(item, "=")
			fmt.Fprintf(&body, "<item><guid>%s</guid><title>Item %s</title><description>%s</description></item>", guid, guid, text)
		}
		s.set(body.String() + "</channel></rss>")
		cfg := watchConfig(s, box, dir, "argus")
		cfg.Subscriptions[0].Items = true
		runToEnd(t, cfg)
		var got []string
		for _, n := range box.take() {
			for _, d := range n.Diffs {
				got = append(got, string(d.Event)+" "+d.Keyword)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", c.items, got, c.want)
		}
	}
}

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
