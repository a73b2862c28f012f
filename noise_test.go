package vokter

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// diffsOf shows the bodies one after the other, each to one check of a new process, and returns for
// each body what was told, as "+keyword: text" or "-keyword: text".
func diffsOf(t *testing.T, cfg Config, s *site, m *mailbox, bodies ...string) (told []string) {
	t.Helper()
	for _, body := range bodies {
		s.set(body)
		runs(t, cfg)
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
	s, m := newSite(t, ""), newMailbox()
	cfg := watching(s, m, t.TempDir(), "argus", "zeus", "hera")
	cfg.Subscriptions[0].FlipFlop = 2
	got := diffsOf(t, cfg, s, m, pageA, pageB, pageA, pageB, pageA, pageB)
	toB := "-argus: Argus watches the house; +zeus: Zeus is in stock"
	toA := "-zeus: Zeus is in stock; +argus: Argus watches the house"
	if want := []string{"", toB, toA, "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	e := explained(t, cfg, inspect.ExplainFilter{})
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
	cfg := watching(s, m, t.TempDir(), "argus", "zeus", "hera")
	cfg.Subscriptions[0].Confirm = 2
	got := diffsOf(t, cfg, s, m, pageA, pageB, pageA, pageC, pageC, pageC)
	toC := "-argus: Argus watches the house; +zeus: Hera sells apples and Zeus; +hera: Hera sells apples and Zeus"
	if want := []string{"", "", "", "", toC, ""}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if e := explained(t, cfg, inspect.ExplainFilter{}); len(e.Changes) != 1 || e.Page.Documents[0].Version != 2 {
		t.Errorf("changes %+v, documents %+v", e.Changes, e.Page.Documents)
	}
}
