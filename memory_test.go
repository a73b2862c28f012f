package vokter

import (
	"github.com/vokter/vokter/pipeline"

	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMemoryForOnePage: with memory for one page at a time all pages go on, each after another.
// What they add is told though so many lines changed that their comparison is coarse.
func TestMemoryForOnePage(t *testing.T) {
	const pages, lines = 3, 51_000
	var checks atomic.Int64
	urls := hosts(t, pages, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		n := (checks.Add(1) - 1) / pages
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "%c%d\n", 'a'+rune(n), i)
		}
		fmt.Fprintf(&b, "needle%d\n", n)
		w.Write([]byte(b.String()))
	})
	m := newMailbox()
	cfg := Config{
		Memory: 1, Checks: 2, Sinks: map[string]pipeline.Sink{"box": m},
		Fetch: FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	}
	for _, u := range urls {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: u, Keywords: []string{"needle0", "needle1"}, Sinks: []string{"box"}})
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := m.all
	if len(got) != pages {
		t.Fatalf("%d notifications, want %d", len(got), pages)
	}
	for _, n := range got {
		if len(n.Diffs) != 2 || n.Diffs[0].Text != "needle0" || n.Diffs[0].Event != pipeline.Removed || n.Diffs[1].Text != "needle1" || n.Diffs[1].Event != pipeline.Added {
			t.Errorf("%s: got %+v", n.URL, n.Diffs)
		}
	}
}

// TestDefaultMemory: a quarter of what the process may use, within bounds.
func TestDefaultMemory(t *testing.T) {
	for limit, want := range map[int64]int64{
		0: 64e6, 100e6: 64e6, 400e6: 100e6, 4e9: 1e9, 64e9: 1e9, math.MaxInt64: 1e9,
	} {
		if got := defaultMemory(limit); got != want {
			t.Errorf("of %d bytes: %d, want %d", limit, got, want)
		}
	}
}
