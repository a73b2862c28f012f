package inspector_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
)

// TestRecent changes two pages before the list is first asked for, and one afterwards.
func TestRecent(t *testing.T) {
	const one, two = "https://example.com/1", "https://example.com/2"
	s, recent := newStore(t), inspector.NewRecent()
	go recent.Run(t.Context(), s)
	s.stages[flow.TopicSnapshots] = diff.New(diff.Config{Observe: recent.Note})
	version := func(page string, n int) {
		s.check(page)
		s.read(fmt.Sprintf("A lantern for %d drachmae", n))
	}
	s.subscribe(one, "legal", "lantern")
	s.read("A lantern")
	s.subscribe(two, "sales", "drachmae")
	s.read("A lantern")
	version(one, 1)
	version(two, 2)
	list := func(f inspect.RecentFilter) (versions []string, next string) {
		t.Helper()
		found, err := recent.Changes(t.Context(), s, f, 0)
		if err != nil {
			t.Fatal(err)
		}
		all := found.Changes
		for _, c := range all {
			if c.Title != "Shop" || c.ID == "" || c.Document == "" || c.Size.Added == 0 || !slices.IsSortedFunc(all, func(a, b inspect.RecentChange) int { return b.Time.Compare(a.Time) }) {
				t.Errorf("got %+v", all)
			}
			versions = append(versions, fmt.Sprint(c.URL[len(c.URL)-1:], ".", c.Version, "/", len(c.Matches)))
		}
		return versions, found.Next
	}
	expect := func(f inspect.RecentFilter, want ...string) string {
		t.Helper()
		got, next := list(f)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", f, got, want)
		}
		return next
	}
	expect(inspect.RecentFilter{}, "2.2/1", "1.2/0")
	version(one, 3)
	version(two, 4)
	expect(inspect.RecentFilter{}, "2.3/0", "1.3/0", "2.2/1", "1.2/0")
	next := expect(inspect.RecentFilter{Limit: 3}, "2.3/0", "1.3/0", "2.2/1")
	if next = expect(inspect.RecentFilter{Limit: 3, After: next}, "1.2/0"); next != "" {
		t.Errorf("the list goes on behind its end: %s", next)
	}
	expect(inspect.RecentFilter{Client: "sales"}, "2.2/1")
	expect(inspect.RecentFilter{Client: "legal"})
	expect(inspect.RecentFilter{Sink: "phone", Delivery: inspect.DeliveryDelivered}, "2.2/1")
	expect(inspect.RecentFilter{Sink: "mail"})
	expect(inspect.RecentFilter{Delivery: inspect.DeliveryDead})
	expect(inspect.RecentFilter{Clients: []string{"legal"}}, "1.3/0", "1.2/0")
	expect(inspect.RecentFilter{Tag: "team-sales"}, "2.3/0", "2.2/1")
	if l := s.list(inspect.ListFilter{Tag: "team-sales"}); len(l.Pages) != 1 || l.Pages[0].URL != two {
		t.Errorf("pages of the tag: %+v", l.Pages)
	}
	if _, err := recent.Changes(t.Context(), s, inspect.RecentFilter{}, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	expect(inspect.RecentFilter{}, "2.3/0", "1.3/0", "2.2/1", "1.2/0") // what is read again is known
	s.foreign[two] = true
	expect(inspect.RecentFilter{}, "1.3/0", "1.2/0")
}

// slowStore is a store that lists its pages when it may.
type slowStore struct {
	*store
	proceed chan struct{}
}

func (s slowStore) States(group, after string) iter.Seq2[string, flow.State] {
	<-s.proceed
	return s.store.States(group, after)
}

// TestRecentIsPartial asks with Partial while the state is still being read, and gets the changes known so far.
func TestRecentIsPartial(t *testing.T) {
	s, recent := slowStore{newStore(t), make(chan struct{})}, inspector.NewRecent()
	s.stages[flow.TopicSnapshots] = diff.New(diff.Config{Observe: recent.Note})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- recent.Run(ctx, s) }()
	changes := func(partial bool) inspect.RecentChanges {
		t.Helper()
		found, err := recent.Changes(t.Context(), s, inspect.RecentFilter{Limit: 10, Partial: partial}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	version := func(text string) {
		s.check(page)
		s.read(text)
	}
	version("before the list is asked for")
	for range 2 { // also while it is read for another caller
		if got := changes(true); !got.Partial || len(got.Changes) > 0 {
			t.Errorf("got %+v while the state is read, want nothing yet", got)
		}
	}
	version("while the state is read")
	if got := changes(true); !got.Partial || len(got.Changes) != 1 {
		t.Errorf("got %+v while the state is read, want the change since then", got)
	}
	close(s.proceed)
	if got := changes(false); got.Partial || len(got.Changes) != 2 {
		t.Errorf("got %+v, want both changes", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := recent.Changes(t.Context(), s, inspect.RecentFilter{}, time.Nanosecond); err == nil {
		t.Error("the state was read after the end")
	}
}

// TestRecentLooksAtAPart: one call with a limit looks at a part of the changes, also if a filter selects
// none of them.
func TestRecentLooksAtAPart(t *testing.T) {
	s, recent := newStore(t), inspector.NewRecent()
	go recent.Run(t.Context(), s)
	f := inspect.RecentFilter{Limit: 10}
	if found, err := recent.Changes(t.Context(), s, f, 0); err != nil || found.Next != "" {
		t.Fatalf("got %+v (%v)", found, err)
	}
	for i := range 500 {
		recent.Note(flow.Observation{Kind: flow.KindChange, Page: "https://example.com/cancelled", ID: fmt.Sprint(i), N: i, Time: s.now.Add(time.Duration(i) * time.Second)})
	}
	found, err := recent.Changes(t.Context(), s, f, 0)
	if f.After = found.Next; err != nil || f.After == "" || len(found.Changes) > 0 {
		t.Fatalf("got %+v (%v), want no change and where the list goes on", found, err)
	}
	if found, err := recent.Changes(t.Context(), s, f, 0); err != nil || found.Next != "" {
		t.Errorf("got %+v (%v), want the end of the list", found, err)
	}
}
