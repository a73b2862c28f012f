package router_test

import (
	"encoding/json"
	"fmt"
	"html"
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
