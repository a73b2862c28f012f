package index

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/test/txtest"
)

func benchPage() Page {
	return Page{
		URL: page, Incarnation: "STORE/documents/3/12345", Stamp: 4,
		Intervals: []intervalCount{{Every: pipeline.Duration(10 * time.Minute), N: 3}},
		Progress: Progress{
			Check: 1000, Asked: t0, Due: t0.Add(10 * time.Minute), Paced: 10 * time.Minute, Phased: true,
			Open: &Open{Deadline: t0.Add(3 * time.Minute), Parts: 1},
		},
		ETag: `"5e8b-60c1d2f3a4b5c"`, BodyHash: text.Hash("body"),
		Documents: []Document{{ID: whole, N: 17, TextHash: text.Hash("text"), Subscriptions: 3}},
	}
}

// checker runs whole checks of a page through a Stage over maps: the outcome of the open
// request, and the wake that asks for the next check.
type checker struct {
	b       *testing.B
	store   *txtest.Store
	stage   *Stage
	now     time.Time
	request flow.Request
}

func newChecker(b *testing.B) *checker {
	c := &checker{b: b, store: txtest.New(), now: t0}
	c.stage = New(Config{Now: func() time.Time { return c.now }})
	return c
}

// next wakes the page when it wants to be, until it asks for a check, and keeps the request.
func (c *checker) next() {
	for range 3 {
		for _, m := range c.store.Take() {
			if m.Type != flow.TypeRequest {
				continue
			}
			r, err := flow.RequestFrom(m)
			if err != nil {
				c.b.Fatal(err)
			}
			c.request = r
			return
		}
		w, ok := c.store.Wake(page)
		if !ok {
			c.b.Fatal("the page does not want to be woken")
		}
		c.now = w.At
		if err := c.store.Handle(context.Background(), c.stage, flow.Message{ID: "w", Key: page, Type: flow.TypeWake}); err != nil {
			c.b.Fatal(err)
		}
	}
	c.b.Fatal("the page asks for no check")
}

// answer handles o as the outcome of the open request.
func (c *checker) answer(o flow.Outcome) {
	o.Page, o.Incarnation, o.Check, o.Nonce, o.Time = page, c.request.Incarnation, c.request.Check, c.request.Nonce, c.now
	if err := c.store.Handle(context.Background(), c.stage, o.Message()); err != nil {
		c.b.Fatal(err)
	}
}

// page returns the stored page.
func (c *checker) page() Page {
	p, err := Load(c.store.Begin().State(page))
	if err != nil {
		c.b.Fatal(err)
	}
	return p
}

// BenchmarkUnchanged is a whole check that finds nothing.
func BenchmarkUnchanged(b *testing.B) {
	c := newChecker(b)
	tx := c.store.Begin()
	p := benchPage()
	p.Open = nil
	if err := newCache().store(tx, page, 0, nil, &p); err != nil {
		b.Fatal(err)
	}
	tx.WakeAt(page, c.now.Add(time.Hour))
	tx.Commit()
	c.next()
	first := c.request.Check
	b.ReportAllocs()
	for b.Loop() {
		c.answer(flow.Outcome{Kind: flow.OutcomeUnchanged, Against: p.BodyHash})
		c.next()
	}
	if got := c.page(); got.Check != first+uint64(b.N) || got.Failures != 0 {
		b.Fatalf("got check %d and %d failures, want check %d and none", got.Check, got.Failures, first+uint64(b.N))
	}
}

func TestMostlyNew(t *testing.T) {
	words := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "word%d ", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"equal":         {words(0, 1000), words(0, 1000), false},
		"moved":         {words(0, 1000), words(500, 1000) + words(0, 500), false},
		"a quarter":     {words(0, 1000), words(250, 1250), false},
		"two fifths":    {words(0, 1000), words(400, 1400), true},
		"all":           {words(0, 1000), words(1000, 2000), true},
		"from nothing":  {"", words(0, 10), true},
		"to nothing":    {words(0, 10), "", true},
		"both nothing":  {"", "\n", false},
		"marks only":    {"a\nb\n", "\x02a\x03\nb", false},
		"repeats count": {"a a a a", "a", true},
	} {
		if got := differBy(c.old, c.new, mostlyNew); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
