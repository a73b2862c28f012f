package router_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestFirstResultIsReported: what is there and empty is a baseline, and its first element is news.
func TestFirstResultIsReported(t *testing.T) {
	const calendar = "BEGIN:VCALENDAR\nVERSION:2.0\n%sEND:VCALENDAR\n"
	for name, c := range map[string]struct {
		contentType, empty, first, sel string
		items                          bool
	}{
		"a JSON array":             {"application/json", "[]", `[{"name": "Lantern"}]`, "", false},
		"its items":                {"application/json", "[]", `[{"id": 1, "name": "Lantern"}]`, "", true},
		"a selected array":         {"application/json", `{"results": []}`, `{"results": ["Lantern"]}`, "/results", false},
		"items of that":            {"application/json", `{"results": []}`, `{"results": [{"id": 1, "name": "Lantern"}]}`, "/results", true},
		"elements by jq":           {"application/json", `{"results": []}`, `{"results": [{"name": "Lantern"}]}`, "jq:.results[].name", false},
		"a whole answer":           {"application/json", `{"results": []}`, `{"results": ["Lantern"]}`, "", false},
		"an empty object":          {"application/json", `{}`, `{"a": "Lantern"}`, "", false},
		"a table with only a head": {"text/csv", "name,price\n", "name,price\nLantern,10\n", "", false},
		"a calendar":               {"text/calendar", strings.Replace(calendar, "%s", "", 1), strings.Replace(calendar, "%s", "BEGIN:VEVENT\nSUMMARY:Lantern\nEND:VEVENT\n", 1), "", false},
		"a selected list":          {"text/html", "<p>Results</p><ul id=r></ul>", "<p>Results</p><ul id=r><li>Lantern</ul>", "#r", false},
		"a feed without a title":   {"application/rss+xml", "<rss><channel></channel></rss>", "<rss><channel><item><title>Lantern</title></item></channel></rss>", "", false},
		"its items, too":           {"application/rss+xml", "<rss><channel></channel></rss>", "<rss><channel><item><title>Lantern</title></item></channel></rss>", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox()
			cfg := watchConfig(newSite(t, ""), m, "")
			cfg.Subscriptions[0].Keywords, cfg.Subscriptions[0].Items = nil, c.items
			cfg.Fetchers = []pipeline.Fetcher{&sequenceFetcher{contentType: c.contentType, bodies: []string{c.empty, c.empty, c.first}}}
			if c.sel != "" {
				cfg.Subscriptions[0].Select = []pipeline.Selector{pipeline.ParseSelector(c.sel)}
			}
			cfg.Checks = 3
			r := runToEnd(t, cfg)
			got := m.take()
			added := func(d pipeline.Diff) bool { return d.Event == pipeline.Added && strings.Contains(d.Snippet, "Lantern") }
			if len(got) != 1 || !slices.ContainsFunc(got[0].Diffs, added) || r.Summary().Failed != 0 {
				t.Errorf("got %+v, %+v", got, r.Summary())
			}
		})
	}
}

// TestSelectedTextThatIsMissingForAMoment: once there was a text, a selected part without one is a failed check.
func TestSelectedTextThatIsMissingForAMoment(t *testing.T) {
	m := newMailbox()
	cfg := watchConfig(newSite(t, ""), m, "")
	cfg.Subscriptions[0].Keywords, cfg.Subscriptions[0].Select = nil, []pipeline.Selector{{CSS: "#app"}}
	cfg.Fetchers = []pipeline.Fetcher{&sequenceFetcher{contentType: "text/html", bodies: []string{"<p id=app>Lantern", "<p id=app>", "<p id=app>Lantern"}}}
	cfg.Checks = 3
	if r := runToEnd(t, cfg); len(m.take()) > 0 || r.Summary().Failed != 1 {
		t.Errorf("got %+v", r.Summary())
	}
}

// TestExpectAbsent: a page that is not there yet is a baseline for those who expect that, and a failed check for
// others.
func TestExpectAbsent(t *testing.T) {
	t.Parallel()
	s, m := newSite(t, "x"), newMailbox()
	dir := t.TempDir()
	cfg := watchConfig(s, m, dir, "lantern")
	cfg.Subscriptions[0].Expect, cfg.Subscriptions[0].Client = pipeline.ExpectAbsent, "whole"
	part := cfg.Subscriptions[0]
	part.Client, part.Keywords, part.Select = "part", nil, []pipeline.Selector{{CSS: "#offer"}}
	other := cfg.Subscriptions[0]
	other.Client, other.Expect = "other", ""
	cfg.Subscriptions = append(cfg.Subscriptions, part, other)
	for i, step := range []struct {
		status     int
		body, want string
	}{
		{http.StatusNotFound, "", ""},
		{http.StatusNotFound, "", ""},
		{http.StatusOK, "<p>A lantern", "whole: added A lantern"}, // the baseline of other
		{http.StatusInternalServerError, "", ""},
		{http.StatusOK, "<p>A lantern<p id=offer>Half price", "part: added Half price"},
		{http.StatusOK, "<p>A lantern", "part: removed Half price"},
		{http.StatusGone, "", "whole: removed A lantern"},
		{http.StatusOK, "<p>A lantern", "whole: added A lantern"},
	} {
		s.set(step.body)
		s.answer(step.status)
		runToEnd(t, cfg)
		var got []string
		for _, n := range m.take() {
			got = append(got, n.Client+": "+string(n.Diffs[0].Event)+" "+n.Diffs[0].Snippet)
		}
		if strings.Join(got, "; ") != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}
