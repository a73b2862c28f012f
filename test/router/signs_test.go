package router_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// pageFormats are formats of a page with a name and a value in each line, row or item.
var pageFormats = map[string]struct {
	contentType, begin, end string
	entry                   func(name, value string) string
}{
	"HTML": {"text/html", "<table>", "</table>", func(name, value string) string {
		return fmt.Sprintf("<tr><td>%s</td><td>%s</td></tr>", name, html.EscapeString(value))
	}},
	"text": {"text/plain", "", "", func(name, value string) string { return name + " is " + value + "\n" }},
	"JSON": {"application/json", "{", `"end": 0}`, func(name, value string) string {
		b, _ := json.Marshal(value) // with \u003c for <
		return fmt.Sprintf("%q: %s,", name, b)
	}},
	"CSV": {"text/csv", "name,value\n", "", func(name, value string) string {
		return fmt.Sprintf("%s,\"%s\"\n", name, strings.ReplaceAll(value, `"`, `""`))
	}},
	"RSS": {"application/rss+xml", "<rss><channel><title>States</title>", "</channel></rss>", func(name, value string) string {
		return fmt.Sprintf("<item><guid>%s</guid><title>%[1]s</title><description>%s</description></item>", name, html.EscapeString(html.EscapeString(value)))
	}},
}

// signChange is an entry of a page whose value changes.
type signChange struct{ old, new string }

// notifiedOfSigns returns what is reported to clients with and without keywords when the values of a page change.
func notifiedOfSigns(t *testing.T, format string, changes []signChange, keywords []string) (every, found []pipeline.Diff) {
	f, m := pageFormats[format], newMailbox()
	var bodies [2]strings.Builder
	for i := range bodies {
		bodies[i].WriteString(f.begin)
		for n, c := range changes {
			bodies[i].WriteString(f.entry(fmt.Sprintf("entry%d", n), []string{c.old, c.new}[i]))
		}
		bodies[i].WriteString(f.end)
	}
	cfg := watchConfig(newSite(t, ""), m, "")
	cfg.Subscriptions[0].Client, cfg.Subscriptions[0].Keywords = "every", nil
	s := cfg.Subscriptions[0]
	s.Client, s.Keywords = "keywords", keywords
	cfg.Subscriptions = append(cfg.Subscriptions, s)
	cfg.Fetchers = []pipeline.Fetcher{&sequenceFetcher{contentType: f.contentType, bodies: []string{bodies[0].String(), bodies[1].String()}}}
	cfg.Checks = 2
	runToEnd(t, cfg)
	for _, n := range m.take() {
		if n.Client == "every" {
			every = append(every, n.Diffs...)
		} else {
			found = append(found, n.Diffs...)
		}
	}
	return every, found
}

// TestSignsAreReported: signs and operators that change are reported in each format, as a change and as a keyword.
func TestSignsAreReported(t *testing.T) {
	changes := []signChange{
		{"✔", "✘"}, {"🟢 open", "🔴 open"}, {"$10", "€10"}, {"5", "-5"}, {"7 degrees", "−7 degrees"}, {"★★★", "★★★★"}, {"a >= b", "a <= b"}, {"x == 1", "x != 1"},
		{"20 °C", "20 °F"}, {"5 %", "5 ‰"}, {"👍🏽", "👎🏽"}, {"🇩🇪", "🇫🇷"}, {"▲ 3", "▼ 3"}, {"n < 4", "n > 4"}, {"no", "no ⚠️"}, {"1 + 1", "1 × 1"},
	}
	keywords := []string{"✘", "🔴", "€10", "-5", "-7 degrees", "<=", "!= 1", "‰", "👎🏽", "🇫🇷", "▼ 3", "> 4", "⚠", "×"}
	for format := range pageFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			every, found := notifiedOfSigns(t, format, changes, append([]string{"entry1"}, keywords...))
			for _, c := range changes {
				if !slices.ContainsFunc(every, func(d pipeline.Diff) bool {
					return d.Event == pipeline.Added && strings.Contains(d.Snippet, c.new) || d.Event == pipeline.Removed && strings.Contains(d.Snippet, c.old)
				}) {
					t.Errorf("%s to %s is not reported: %+v", c.old, c.new, every)
				}
			}
			var got []string
			for _, d := range found {
				if d.Event == pipeline.Added {
					got = append(got, d.Keyword)
				}
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(keywords)); !slices.Equal(slices.Compact(got), want) {
				t.Errorf("keywords %q, want %q", got, want)
			}
		})
	}
}

// TestPunctuationIsSilent: what only sets texts apart changes nothing in any format.
func TestPunctuationIsSilent(t *testing.T) {
	changes := []signChange{
		{`"quoted" words`, "“quoted” words"}, {"one, two", "one; two."}, {"in 5-7 days", "in 5–7 days"}, {"on 2026-11-27", "on 2026/11/27"}, {"a dash - here", "a dash — here"},
		{"• a point", "· a point"}, {"next ▸", "next »"}, {"home | shop", "home / shop"}, {"a blank", "a\u00a0blank"}, {"really?", "really!"}, {"box │ line", "box ─ line"},
	}
	for format := range pageFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			if every, found := notifiedOfSigns(t, format, changes, []string{"quoted", "5-7", "point"}); len(every)+len(found) > 0 {
				t.Errorf("got %+v and %+v", every, found)
			}
		})
	}
}

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
