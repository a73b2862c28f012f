package inspect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
)

// TestRecent changes two pages before the list is first asked for, and one afterwards.
func TestRecent(t *testing.T) {
	const one, two = "https://example.com/1", "https://example.com/2"
	s, recent := newStore(t), new(inspect.Recent)
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
		all, next, err := recent.Changes(t.Context(), s, f, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Title != "Shop" || c.ID == "" || c.Document == "" || c.Size.Added == 0 || !slices.IsSortedFunc(all, func(a, b inspect.RecentChange) int { return b.Time.Compare(a.Time) }) {
				t.Errorf("got %+v", all)
			}
			versions = append(versions, fmt.Sprint(c.URL[len(c.URL)-1:], ".", c.Version, "/", len(c.Matches)))
		}
		return versions, next
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
	if _, _, err := recent.Changes(t.Context(), s, inspect.RecentFilter{}, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	expect(inspect.RecentFilter{}, "2.3/0", "1.3/0", "2.2/1", "1.2/0") // what is read again is known
	s.foreign[two] = true
	expect(inspect.RecentFilter{}, "1.3/0", "1.2/0")
}
