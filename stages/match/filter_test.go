package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// evictTables removes the tables from memory.
func (h stageTest) evictTables() { h.p.cache = stored.NewCache[tableKey, *table](h.p.cfg.Cache) }

// TestEveryChangeHasNoFilter: a large table with a subscription without keywords is read for each
// change.
func TestEveryChangeHasNoFilter(t *testing.T) {
	const last = minFilteredTable + 1
	h := newStageTest(t, Config{Cache: 1})
	for i := range minFilteredTable {
		h.applyStamps(newStamped(i, i+1, 0, flow.Forever, fmt.Sprint("word", i)))
	}
	h.recipients(newChange(1, "nothing of it"))
	h.applyStamps(newStamped(last, last, 0, flow.Forever))
	for n := 2; n < 5; n++ {
		h.evictTables()
		c := newChange(n, "nothing of it")
		c.Groups[0].Differences = []flow.Difference{{Event: pipeline.Added, Text: "nothing of it", Offset: len("old "), Edit: 1}}
		if got := h.recipients(c); !strings.Contains(got, fmt.Sprint("c", last)) {
			t.Errorf("change %d notified %q, want the subscription without keywords", n, got)
		}
	}
}

func TestFilterSparesTheTable(t *testing.T) {
	const last = minFilteredTable
	langs := text.NewLanguages()
	h := newStageTest(t, Config{Languages: langs, Cache: 1})
	for i := range last {
		h.applyStamps(newStamped(i, i+1, 0, flow.Forever, fmt.Sprint("word", i), "out of stock"))
	}
	h.recipients(newChange(1, "nothing of it"))
	reads := func(p *Processor, c *flow.Change) bool {
		t.Helper()
		tx := h.Begin()
		tab, err := p.tableFor(tx, page, c, recordsOf(tx, page, tableKey{c.Incarnation, c.Document}))
		if err != nil {
			t.Fatal(err)
		}
		return tab != nil
	}
	if !reads(h.p, newChange(2, "none")) {
		t.Error("the table in memory is not used")
	}
	h.evictTables()
	if reads(h.p, newChange(2, "none of it in stock out")) {
		t.Error("the table is read for a change that touches no keyword")
	}
	if reads(New(Config{}), newChange(2, "none")) {
		t.Error("after a restart, the table is read for the first change, which touches no keyword")
	}
	german := newChange(2, "none")
	german.Language = "de"
	for name, c := range map[string]*flow.Change{
		"a word": newChange(2, "a word17"), "a phrase": newChange(2, "out of stock"), "another language": german,
	} {
		h.evictTables()
		if !reads(h.p, c) {
			t.Errorf("%s: the table is not read", name)
		}
	}
	h.evictTables()
	langs.Unregister("en")
	if !reads(h.p, newChange(2, "none")) {
		t.Error("the filter of other languages is used")
	}
	h.evictTables()
	h.recipients(newChange(2, "none"))
	h.evictTables()
	if reads(h.p, newChange(3, "none")) {
		t.Error("the filter of registered languages is not used in this process")
	}
	if !reads(New(Config{Languages: langs}), newChange(3, "none")) {
		t.Error("the filter of registered languages is used in another process")
	}
	size, _ := h.Value(page, stateName(kindFilter, "inc", "doc"))
	if len(size) > 700 {
		t.Errorf("the filter over %d keywords takes %d bytes", last+1, len(size))
	}
}

func TestSmallTablesHaveNoFilter(t *testing.T) {
	h := newStageTest(t, Config{})
	for i := range minFilteredTable - 1 {
		h.applyStamps(newStamped(i, i+1, 0, flow.Forever, "argus"))
	}
	h.recipients(newChange(1, "zeus"))
	if got := h.stateNames(kindFilter); len(got) != 0 {
		t.Errorf("stored are %q", got)
	}
}

// TestFilterChangesNoNotification compares a stage that keeps its table in memory with one that
// is started again before each change.
func TestFilterChangesNoNotification(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 4))
	some := func(n int) string {
		var ws []string
		for range n {
			ws = append(ws, fmt.Sprint([]string{"word", "Word", "wörd"}[r.IntN(3)], r.IntN(100)))
		}
		return strings.Join(ws, " ")
	}
	filtered, told := 0, 0
	for round := range 30 {
		with, without := newStageTest(t, Config{}), newStageTest(t, Config{})
		stamp := 0
		subscribe := func(n int) {
			for range n {
				stamp++
				s := newStamped(stamp, stamp, 0, flow.Forever)
				s.Subscription = randomSubscription(r)
				s.Subscription.URL, s.Subscription.Client, s.Subscription.Sinks = page, fmt.Sprint("c", stamp), []string{"hook"}
				s.Subscription.Keywords = []string{some(1 + r.IntN(3))}
				with.applyStamps(s)
				without.applyStamps(s)
			}
		}
		subscribe(minFilteredTable)
		for n := 1; n <= 12; n++ {
			if n == 8 {
				subscribe(1)
			}
			c, _ := changeOf(12, groupTexts{old: some(r.IntN(3)), new: some(1 + r.IntN(6))})
			c.ID, c.Version = fmt.Sprint("change", n), uint64(n)
			with.p = New(Config{Observe: func(o flow.Observation) {
				if o.Kind == flow.KindFiltered {
					filtered++
				}
			}})
			got, err := with.handleChange(c)
			if err != nil {
				t.Fatal(err)
			}
			want, err := without.handleChange(c)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, change %d\n got %+v\nwant %+v", round, n, got, want)
			}
			told += len(want)
		}
	}
	if filtered < 5 || told < 50 {
		t.Errorf("%d changes were filtered and %d notifications made: this proves little", filtered, told)
	}
}
