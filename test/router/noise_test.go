package router_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// diffsOf shows the bodies one after the other, each to one check of a new process, and returns for
// each body what was told, as "+keyword: text" or "-keyword: text".
func diffsOf(t *testing.T, cfg vokter.Config, s *site, m *mailbox, bodies ...string) (told []string) {
	t.Helper()
	for _, body := range bodies {
		s.set(body)
		runToEnd(t, cfg)
		var diffs []string
		for _, n := range m.take() {
			for _, d := range n.Diffs {
				sign := "+"
				if d.Event == pipeline.Removed {
					sign = "-"
				}
				diffs = append(diffs, sign+d.Keyword+": "+d.Text)
			}
		}
		told = append(told, strings.Join(diffs, "; "))
	}
	return told
}

const (
	pageA = "<p>Argus watches the house</p>"
	pageB = "<p>Zeus is in stock</p>"
	pageC = "<p>Hera sells apples and Zeus</p>"
)

// TestAlternatingPage: A, B, A, B … gives two notifications, then none until C, which is compared
// with the text that was told last.
func TestAlternatingPage(t *testing.T) {
	t.Parallel()
	s, m := newSite(t, ""), newMailbox()
	cfg := watchConfig(s, m, t.TempDir(), "argus", "zeus", "hera")
	cfg.Subscriptions[0].FlipFlop = 2
	got := diffsOf(t, cfg, s, m, pageA, pageB, pageA, pageB, pageA, pageB)
	toB := "-argus: Argus watches the house; +zeus: Zeus is in stock"
	toA := "-zeus: Zeus is in stock; +argus: Argus watches the house"
	if want := []string{"", toB, toA, "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if why := e.Checks[0].Reason; !strings.Contains(why, "flip_flop: 2") || !strings.Contains(why, "the text of version 2") {
		t.Errorf("explain says %q of a text that was told before", why)
	}
	if e.Page.Documents[0].View.FlipFlop != 2 || e.Page.Subscriptions[0].FlipFlop != 2 {
		t.Errorf("list does not show it: %+v", e.Page)
	}
	got = diffsOf(t, cfg, s, m, pageC, pageC)
	toC := "-argus: Argus watches the house; +zeus: Hera sells apples and Zeus; +hera: Hera sells apples and Zeus"
	if want := []string{toC, ""}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestConfirmedOverRestarts: with confirm 2, the texts A, B, A, C, C are one change from A to C.
func TestConfirmedOverRestarts(t *testing.T) {
	s, m := newSite(t, ""), newMailbox()
	cfg := watchConfig(s, m, t.TempDir(), "argus", "zeus", "hera")
	cfg.Subscriptions[0].Confirm = 2
	got := diffsOf(t, cfg, s, m, pageA, pageB, pageA, pageC, pageC, pageC)
	toC := "-argus: Argus watches the house; +zeus: Hera sells apples and Zeus; +hera: Hera sells apples and Zeus"
	if want := []string{"", "", "", "", toC, ""}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if e := explainPage(t, cfg, inspect.ExplainFilter{}); len(e.Changes) != 1 || e.Page.Documents[0].Version != 2 {
		t.Errorf("changes %+v, documents %+v", e.Changes, e.Page.Documents)
	}
}

// TestMinChange: a subscription is told nothing of a change that is smaller than its min_change,
// and explain gives the figures. Another client of the same document is told everything.
func TestMinChange(t *testing.T) {
	t.Parallel()
	fifty := strings.Repeat("word ", 48)
	texts := []string{
		"<p>" + fifty + "zeus one</p>",
		"<p>" + fifty + "argus one</p>",           // one of 50 tokens: 2 %
		"<p>" + fifty + "zeus two three four</p>", // four tokens added, two removed, of 52: 7.69 %
	}
	small := "the change is too small: "
	for _, c := range []struct {
		least pipeline.MinChange
		told  []string
		why   string // of "argus" in the last change
	}{
		{pipeline.MinChange{}, []string{"", "-zeus: zeus; +argus: argus", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Tokens: 1}, []string{"", "-zeus: zeus; +argus: argus", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Tokens: 2}, []string{"", "", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Tokens: 4}, []string{"", "", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Tokens: 5}, []string{"", "", ""}, small + "4 changed tokens, and min_change asks for 5"},
		{pipeline.MinChange{Share: 200}, []string{"", "-zeus: zeus; +argus: argus", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Share: 201}, []string{"", "", "-argus: argus one; +zeus: zeus two three four"}, ""},
		{pipeline.MinChange{Share: 770}, []string{"", "", ""}, small + "4 changed tokens of 52, which is 7.69%, and min_change asks for 7.7%"},
	} {
		s, m := newSite(t, ""), newMailbox()
		cfg := watchConfig(s, m, t.TempDir(), "zeus", "argus")
		cfg.Subscriptions[0].MinChange = c.least
		if got := diffsOf(t, cfg, s, m, texts...); !slices.Equal(got, c.told) {
			t.Errorf("min_change %s: told %q, want %q", c.least, got, c.told)
		}
		for _, k := range explainPage(t, cfg, inspect.ExplainFilter{}).Keywords {
			if k.Why != c.why || k.Matched != (c.why == "") {
				t.Errorf("min_change %s: explain says %q, want %q", c.least, k.Why, c.why)
			}
		}
	}
}

// TestReplacedOverRestarts: a login wall is a health event and no change. A rewritten page comes
// through after 20 checks.
func TestReplacedOverRestarts(t *testing.T) {
	s, m, ops := newSite(t, ""), newMailbox(), newMailbox()
	cfg := watchConfig(s, m, t.TempDir(), "zeus", "argus", "sign in")
	cfg.Subscriptions[0].Replaced = true
	cfg.Sinks["ops"], cfg.Health = ops, []string{"ops"}
	events := func() (names []string) {
		for _, n := range ops.take() {
			names = append(names, string(n.Health.Event))
		}
		return names
	}
	shop := "<p>Zeus and his eagle</p><p>" + strings.Repeat("all about gods ", 20) + "</p>"
	wall := "<h1>Sign in</h1><p>User name</p><p>Password</p>"
	if got := diffsOf(t, cfg, s, m, shop, wall, wall, shop, shop+"<p>Argus</p>"); !slices.Equal(got, []string{"", "", "", "", "+argus: Argus"}) {
		t.Errorf("told %q", got)
	}
	if got := events(); !slices.Equal(got, []string{"page_replaced", "recovered"}) {
		t.Errorf("health events %q", got)
	}
	s.set(wall)
	runToEnd(t, cfg)
	if e := explainPage(t, cfg, inspect.ExplainFilter{}); !strings.Contains(e.Checks[0].Reason, `says "password"`) || e.Page.Documents[0].State != inspect.StatePageReplaced || e.Page.Failures != 0 {
		t.Errorf("explain says %+v of %+v", e.Checks[0], e.Page)
	}
	cfg.Checks = 18
	runToEnd(t, cfg)
	if got := m.take(); len(got) > 0 {
		t.Errorf("told %+v", got)
	}
	cfg.Checks = 1
	if got := diffsOf(t, cfg, s, m, wall); len(got) != 1 || !strings.Contains(got[0], "+sign in: Sign in") || !strings.Contains(got[0], "-zeus: ") {
		t.Errorf("told %q after 20 checks", got)
	}
	if got := events(); !slices.Equal(got, []string{"page_replaced", "recovered"}) {
		t.Errorf("health events %q", got)
	}
}
