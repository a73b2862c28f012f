package router_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// TestVersions reads the history of a page with ten versions, of which the first has been dropped,
// from a stopped data directory.
func TestVersions(t *testing.T) {
	t.Parallel()
	s, box := newSite(t, ""), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "lantern")
	url := s.URL + "/a"
	for n := range 11 {
		s.set(fmt.Sprintf("<title>Shop</title><p>Hera’s café</p><ul><li>A lantern costs %d drachmae</li></ul>%s", n, strings.Repeat("<p>A lantern</p>", n%2)))
		runToEnd(t, cfg)
	}
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		h, err := r.Versions(t.Context(), url, inspect.DocumentFilter{})
		if err != nil || len(h.Versions) != 11 || h.Versions[0].N != 11 || !h.Versions[10].Baseline {
			t.Fatalf("got %+v, %v", h, err)
		}
		for i, v := range h.Versions[:10] {
			want := flow.Size{Removed: 1, Added: 3, Old: 8, New: 10}
			if v.N%2 == 1 {
				want = flow.Size{Removed: 3, Added: 1, Old: 10, New: 8}
			}
			if v.Baseline || v.Forgotten || v.Size == nil || withoutMuted(*v.Size) != want || v.Bytes == 0 {
				t.Errorf("version %d: %+v of size %+v", v.N, v, v.Size)
			}
			if len(v.Matches) != 1 || v.Matches[0].Client != "default" || v.Matches[0].Delivery != inspect.DeliveryDelivered {
				t.Errorf("version %d notified %+v", v.N, v.Matches)
			}
			text, err := r.Text(t.Context(), url, v.N, inspect.DocumentFilter{})
			if err != nil || !strings.Contains(text.Text, fmt.Sprintf("A lantern costs %d drachmae", v.N-1)) || strings.ContainsAny(text.Text, "\x02\x03") {
				t.Errorf("text of version %d: %+v, %v", v.N, text, err)
			}
			if i == 0 {
				if current, err := r.Text(t.Context(), url, 0, inspect.DocumentFilter{}); err != nil || current.Text != text.Text || current.N != 11 {
					t.Errorf("the current text is %+v, %v", current, err)
				}
			}
		}
		_, err = r.Text(t.Context(), url, 12, inspect.DocumentFilter{})
		if refused, ok := errors.AsType[*flow.Refusal](err); !ok || refused.Code != flow.CodeNotFound || !strings.Contains(err.Error(), "11 versions from 1 to 11 are kept") {
			t.Errorf("a dropped version: %v", err)
		}
		d, err := r.Diff(t.Context(), url, inspect.DiffFilter{})
		if err != nil || d.From.N != 10 || d.To.N != 11 || d.Size != withoutMuted(*h.Versions[0].Size) {
			t.Errorf("the last difference is %+v, %v", d, err)
		}
		if d, err := r.Diff(t.Context(), url, inspect.DiffFilter{From: 3, To: 9, Context: -1}); err != nil || len(d.Rows) != 3 || d.Rows[0].Kind != inspect.RowKept ||
			d.Rows[2].Old[0].Segments[1] != (inspect.Segment{Text: "2", Event: pipeline.Removed}) {
			t.Errorf("the difference of versions 3 and 9 is %+v, %v", d, err)
		}
		o, err := r.Occurrences(t.Context(), url, "a LANTERN", inspect.OccurrenceFilter{})
		if err != nil || len(o.Versions) != 11 || len(o.Occurrences) != 12 {
			t.Errorf("got %+v, %v", o, err)
		}
		for _, found := range o.Occurrences {
			for _, p := range found.Places {
				text, err := r.Text(t.Context(), url, p.Version, inspect.DocumentFilter{})
				if err != nil || text.Text[p.Start:p.End] != "A lantern" || found.Text != "A lantern" {
					t.Errorf("%+v is %q, %v", p, text.Text[p.Start:p.End], err)
				}
			}
		}
	})
}

// TestOffsetsOfNotifications finds each text of a notification at its offset in the version that it
// names: the text that was added in that version, the one that was removed in the version before.
func TestOffsetsOfNotifications(t *testing.T) {
	s, box := newSite(t, "<p>Hera’s café</p><table><tr><td>lantern</td><td>10 drachmae</td></tr></table><p>no more lanterns left</p><ul><li>κάποιος λύχνος</ul>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "lantern", "drachmae", "café", "λύχνος")
	cfg.Subscriptions[0].Stem, cfg.Subscriptions[0].Moved = true, true
	runToEnd(t, cfg)
	s.set("<p>Εδώ ένας λύχνος</p><table><tr><td>new lantern</td><td>12 drachmae</td></tr></table><ul><li>one café<li>a lantern</ul><p>Hera’s café</p>")
	runToEnd(t, cfg)
	sent := box.take()
	if len(sent) != 1 {
		t.Fatalf("got %d notifications", len(sent))
	}
	events := make(map[pipeline.Event]int)
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		for _, d := range sent[0].Diffs {
			events[d.Event]++
			n := sent[0].Version
			if d.Event == pipeline.Removed {
				n--
			}
			text, err := r.Text(t.Context(), s.URL+"/a", n, inspect.DocumentFilter{})
			if err != nil || !strings.HasPrefix(text.Text[min(d.Offset, len(text.Text)):], d.Text) {
				t.Errorf("%+v is not in version %d at its offset: %v", d, n, err)
			}
		}
	})
	if events[pipeline.Added] < 3 || events[pipeline.Removed] < 2 {
		t.Errorf("too few diffs to show anything: %+v", sent[0].Diffs)
	}
}

// TestDocumentFilter chooses among the documents of a page.
func TestDocumentFilter(t *testing.T) {
	s, box := newSite(t, "<main>lantern</main><p>Zeus</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "lantern")
	main := cfg.Subscriptions[0]
	main.Client, main.Select = "shop", []pipeline.Selector{{CSS: "main"}}
	cfg.Subscriptions = append(cfg.Subscriptions, main)
	runToEnd(t, cfg)
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		text := func(f inspect.DocumentFilter) (string, error) {
			found, err := r.Text(t.Context(), main.URL, 0, f)
			return found.Text, err
		}
		_, err := text(inspect.DocumentFilter{})
		refused, ok := errors.AsType[*flow.Refusal](err)
		if !ok || refused.Code != flow.CodeConflict || !strings.Contains(err.Error(), "the whole page; client default") || !strings.Contains(err.Error(), "select main; client shop") {
			t.Errorf("several documents: %v", err)
		}
		for _, f := range []inspect.DocumentFilter{{Client: "shop"}, {Select: "main"}} {
			if got, err := text(f); err != nil || strings.TrimSpace(got) != "lantern" {
				t.Errorf("%+v: %q, %v", f, got, err)
			}
		}
		h, err := r.Versions(t.Context(), main.URL, inspect.DocumentFilter{Client: "default"})
		if err != nil || !h.View.IsZero() || len(h.Versions) != 1 || !h.Versions[0].Baseline || h.Versions[0].Size != nil {
			t.Errorf("got %+v, %v", h, err)
		}
		if got, err := text(inspect.DocumentFilter{Document: h.Document[:6]}); err != nil || !strings.Contains(got, "Zeus") {
			t.Errorf("by ID: %q, %v", got, err)
		}
		var codes []int
		for _, call := range []func() error{
			func() error { _, err := text(inspect.DocumentFilter{Client: "nobody"}); return err },
			func() error { _, err := r.Versions(t.Context(), s.URL+"/b", inspect.DocumentFilter{}); return err },
			func() error {
				_, err := r.Diff(t.Context(), main.URL, inspect.DiffFilter{DocumentFilter: inspect.DocumentFilter{Client: "shop"}})
				return err
			},
		} {
			if refused, ok := errors.AsType[*flow.Refusal](call()); ok {
				codes = append(codes, refused.Code)
			}
		}
		if !slices.Equal(codes, []int{flow.CodeNotFound, flow.CodeNotFound, flow.CodeNotFound}) {
			t.Errorf("got codes %v", codes)
		}
		for _, call := range []func() error{
			func() error {
				_, err := r.Occurrences(t.Context(), main.URL, "!!!", inspect.OccurrenceFilter{})
				return err
			},
			func() error {
				_, err := r.Occurrences(t.Context(), main.URL, "a", inspect.OccurrenceFilter{Limit: -1})
				return err
			},
			func() error {
				_, err := r.Occurrences(t.Context(), main.URL, "a", inspect.OccurrenceFilter{Match: "fuzzy"})
				return err
			},
			func() error {
				_, err := r.Occurrences(t.Context(), main.URL, "a", inspect.OccurrenceFilter{Language: "?"})
				return err
			},
		} {
			if err := call(); err == nil {
				t.Error("an invalid field is accepted")
			} else if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestChangesAreThoseThatWerePublished compares the changes between stored versions, of a page and of
// a feed, with what the pipeline published.
func TestChangesAreThoseThatWerePublished(t *testing.T) {
	feed := func(items string) string {
		return `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://a.example/</link><description>d</description>` + items + `</channel></rss>`
	}
	item := func(id, title string) string {
		return "<item><guid>" + id + "</guid><title>" + title + "</title></item>"
	}
	for name, c := range map[string]struct {
		view   pipeline.View
		bodies []string
		added  string
	}{
		"page": {bodies: []string{"<p>a lantern</p><ul><li>one<li>two</ul>", "<p>a lantern</p><ul><li>one<li>two lanterns</ul>", "<p>a  lantern</p><ul><li>one<li>two lanterns</ul>", "<p>a lantern, lit</p>"}, added: "lit"},
		"feed": {pipeline.View{Items: true}, []string{feed(item("1", "a lantern") + item("2", "a lamp")), feed(item("3", "a new lantern") + item("2", "a lamp"))}, "a new lantern"},
	} {
		s, box := newSite(t, ""), newMailbox()
		cfg := watchConfig(s, box, t.TempDir(), "lantern", "lit")
		cfg.Subscriptions[0].View = c.view
		var published []flow.Change
		for _, body := range c.bodies {
			s.set(body)
			r, err := vokter.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			r.Handle("probe", flow.TopicChanges, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, m flow.Message) error {
				change, err := flow.ChangeFrom(m)
				published = append(published, change)
				return err
			}))
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		withIdleRouter(t, cfg, func(r *vokter.Router) {
			h, err := r.Changes(t.Context(), cfg.Subscriptions[0].URL, inspect.DocumentFilter{}, 0)
			if err != nil || len(h.Changes) != len(published) || len(published) == 0 {
				t.Fatalf("%s: got %+v, %v, published were %+v", name, h, err, published)
			}
			for i, got := range h.Changes {
				want := published[i]
				if !reflect.DeepEqual(got.Groups, want.Groups) || got.Version != want.Version || got.Previous != want.Previous || got.Size != want.Size ||
					!got.Time.Equal(want.Time) || got.Title != want.Title || got.Language != want.Language || got.Check != want.Check {
					t.Errorf("%s: got %+v, published was %+v", name, got, want)
				}
			}
			latest, err := r.Changes(t.Context(), cfg.Subscriptions[0].URL, inspect.DocumentFilter{}, 1)
			if err != nil || latest.Versions != h.Versions || !reflect.DeepEqual(latest.Changes, h.Changes[len(h.Changes)-1:]) {
				t.Errorf("%s: the last change is %+v, %v, want that of %+v", name, latest, err, h)
			}
			d, err := r.Diff(t.Context(), cfg.Subscriptions[0].URL, inspect.DiffFilter{})
			last := published[len(published)-1]
			if err != nil || d.Size != last.Size {
				t.Errorf("%s: the last difference is of size %+v, %v, published was %+v", name, d.Size, err, last.Size)
			}
		})
		sent := box.take()
		if last := sent[len(sent)-1]; !slices.ContainsFunc(last.Diffs, func(d pipeline.Diff) bool { return d.Text == c.added }) {
			t.Errorf("%s: %q was not added in %+v", name, c.added, last.Diffs)
		}
	}
}

// stuckReads is a transport that does not answer who asks for the state of a page, until it is released.
type stuckReads struct {
	*local.Transport
	release chan struct{}
}

func (s stuckReads) State(group, key string) flow.State {
	if key == pushedURL {
		<-s.release
	}
	return s.Transport.State(group, key)
}

// TestComparisonsTakeTurns: callers who ask for very many comparisons wait for each other, and not the
// stages for them.
func TestComparisonsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := stuckReads{openTransport(t, ""), make(chan struct{})}
		r, stop := startRouter(t, vokter.Config{Transport: slow})
		defer stop()
		refusals := make(chan error)
		const callers = 100
		for range callers {
			go func() {
				_, err := r.Diff(t.Context(), pushedURL, inspect.DiffFilter{})
				refusals <- err
			}()
		}
		synctest.Wait()
		late := errors.New("late")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(late)
		_, diff := r.Diff(ctx, pushedURL, inspect.DiffFilter{})
		_, changes := r.Changes(ctx, pushedURL, inspect.DocumentFilter{}, 0)
		_, occurrences := r.Occurrences(ctx, pushedURL, "a", inspect.OccurrenceFilter{})
		for name, err := range map[string]error{"Diff": diff, "Changes": changes, "Occurrences": occurrences} {
			if !errors.Is(err, late) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		close(slow.release)
		for range callers {
			var refused *flow.Refusal
			if err := <-refusals; !errors.As(err, &refused) {
				t.Errorf("in its turn: got %v", err)
			}
		}
	})
}

// withoutMuted returns s as if nothing of it were muted.
func withoutMuted(s flow.Size) flow.Size {
	s.MutedRemoved, s.MutedAdded, s.WordsRemoved, s.WordsAdded = 0, 0, 0, 0
	return s
}
