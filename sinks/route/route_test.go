package route

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

func quiet(t *testing.T, s string) pipeline.Quiet {
	t.Helper()
	q, err := pipeline.ParseQuiet(s)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestRules(t *testing.T) {
	r, err := New(Config{To: registry.Texts{"rest"}, Routes: []Rule{
		{When: Conditions{Host: registry.Texts{"*.shop.example.com", "shop.example.com"}, Keyword: registry.Texts{"sold out"}}, To: registry.Texts{"pager", "chat"}},
		{When: Conditions{Client: registry.Texts{"legal-*"}}, To: registry.Texts{"mail", "chat"}, Continue: true},
		{When: Conditions{Client: registry.Texts{"noisy"}}},
		{When: Conditions{Severity: registry.Texts{"critical"}}, To: registry.Texts{"pager"}},
		{When: Conditions{Tag: registry.Texts{"prices", "stock"}}, To: registry.Texts{"shop"}},
		{When: Conditions{Time: quiet(t, "18:00-08:00 Europe/Berlin"), Days: registry.Texts{"mon", "tue"}}, To: registry.Texts{"chat", "night"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Targets(), " "); got != "rest pager chat mail shop night" {
		t.Errorf("it leads to %s", got)
	}
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) // a Monday
	night := time.Date(2026, 1, 6, 22, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		name, url, client, keyword string
		at                         time.Time
		want                       string
	}{
		{"no rule", "https://example.com/", "c", "stock", noon, "rest"},
		{"all conditions", "https://de.shop.example.com:8443/a", "c", "sold out", noon, "pager chat"},
		{"a host in capitals", "https://SHOP.example.com/a", "c", "sold out", noon, "pager chat"},
		{"one condition only", "https://shop.example.com/a", "c", "stock", noon, "rest"},
		{"an asterisk that is no name", "https://notshop.example.com/a", "c", "sold out", noon, "rest"},
		{"continue with nothing behind it", "https://example.com/", "legal-eu", "stock", noon, "mail chat"},
		{"continue, and each sink once", "https://example.com/", "legal-eu", "stock", night, "mail chat night"},
		{"a rule without sinks", "https://example.com/", "noisy", "stock", noon, ""},
		{"the hours and the day in the zone", "https://example.com/", "c", "stock", night, "chat night"},
		{"the hours on another day", "https://example.com/", "c", "stock", night.AddDate(0, 0, 2), "rest"},
		{"past midnight in the zone it is Wednesday", "https://example.com/", "c", "stock", night.Add(time.Hour), "rest"},
	} {
		n := pipeline.Notification{URL: c.url, Client: c.client, Diffs: []pipeline.Diff{{Keyword: "other"}, {Keyword: c.keyword}}}
		if got := strings.Join(r.Route(n, c.at), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := r.Route(pipeline.Notification{Tags: []string{"news", "stock"}}, noon); len(got) != 1 || got[0] != "shop" {
		t.Errorf("what has a tag goes to %v", got)
	}
	if got := r.Route(pipeline.Notification{Severity: pipeline.SeverityCritical}, noon); len(got) != 1 || got[0] != "pager" {
		t.Errorf("what is critical goes to %v", got)
	}
	if err := r.Deliver(t.Context(), pipeline.Notification{}); err == nil || !strings.Contains(err.Error(), "rest, pager, chat") {
		t.Errorf("a delivery: %v", err)
	}
}
