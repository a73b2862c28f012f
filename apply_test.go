package vokter

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/inspect"
)

// TestOnlyKeepsSubscriptionsOfAKeptPage: with Only a document is kept beside the
// subscriptions of its page, also those of clients that this Config does not name.
func TestOnlyKeepsSubscriptionsOfAKeptPage(t *testing.T) {
	s, box, dir := newSite(t, "<p>Zeus.</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, box, dir, "argus")
	other := cfg
	other.Subscriptions = slices.Clone(cfg.Subscriptions)
	other.Subscriptions[0].Client = "other"
	page := cfg.Subscriptions[0].URL
	other.Only, cfg.Only = []string{page}, []string{page}
	runs(t, other)
	cfg.Documents = []Document{{URL: page, Keep: true}}
	runs(t, cfg)
	s.set("<p>Zeus. Argus.</p>")
	runs(t, cfg)
	var clients []string
	for _, n := range box.take() {
		clients = append(clients, n.Client)
	}
	slices.Sort(clients)
	if want := []string{"default", "other"}; !slices.Equal(clients, want) {
		t.Errorf("%q were told, want %q", clients, want)
	}
	r, stop := lives(t, Config{Dir: dir, Mode: ModeCommands})
	defer stop()
	for _, client := range []string{"default", "other"} {
		if err := r.Cancel(t.Context(), page, client); err != nil {
			t.Error(err)
		}
	}
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(l.Pages) != 1 || l.Pages[0].URL != page {
		t.Errorf("got %+v, %v, want the page kept without subscriptions", l.Pages, err)
	}
}
