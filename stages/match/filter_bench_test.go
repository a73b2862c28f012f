package match

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

var documents = flag.Int("match.documents", 1000, "how many documents the store of BenchmarkFilter holds")

// BenchmarkFilter compares reading and indexing a table from a store on disk, and matching a
// change that touches none of its keywords, with asking a filter. Documents are read in a random
// order, so that Pebble's cache has few of them where there are many.
func BenchmarkFilter(b *testing.B) {
	for _, bench := range []struct{ documents, subscriptions int }{
		{*documents, 2}, {min(*documents, 1000), 32}, {min(*documents, 30), 1000}, {min(*documents, 10), 10_000},
	} {
		b.Run(fmt.Sprintf("documents=%d/subscriptions=%d", bench.documents, bench.subscriptions), func(b *testing.B) {
			db := filledStore(b, bench.documents, bench.subscriptions)
			langs := text.NewLanguages()
			measure := func(name string, f func(st flow.State, c *flow.Change)) {
				b.Run(name, func(b *testing.B) {
					r := rand.New(rand.NewPCG(9, 9))
					c := unrelatedChange(r)
					b.ReportAllocs()
					for b.Loop() {
						f(benchState{db: db, key: benchPage(r.IntN(bench.documents))}, c)
					}
				})
			}
			measure("table", func(st flow.State, c *flow.Change) {
				t := newTestTable(langs)
				if err := (records{tableKey{"inc", "doc"}, st, st}).all(t.add); err != nil || t.index.len() != bench.subscriptions {
					b.Fatalf("%d records, %v", t.index.len(), err)
				}
				t.index.findMatches(c)
			})
			measure("filter", func(st flow.State, c *flow.Change) {
				var f filter
				v, ok, err := st.Get(stateName(kindFilter, c.Incarnation, c.Document))
				if err != nil || !ok || decodeValue(v, &f) != nil {
					b.Fatal(ok, err)
				}
				f.mayMatch(c, langs)
			})
		})
	}
}

func benchPage(i int) string {
	return fmt.Sprintf("https://host%d.example.com/articles/%d.html", i%997, i)
}

func benchWords(r *rand.Rand, n int) string {
	ws := make([]string, n)
	for i := range ws {
		for range 4 + r.IntN(6) {
			ws[i] += string(rune('a' + r.IntN(26)))
		}
	}
	return strings.Join(ws, " ")
}

// unrelatedChange is a change of four paragraphs that touches no keyword.
func unrelatedChange(r *rand.Rand) *flow.Change {
	var groups []groupTexts
	for range 4 {
		old := benchWords(r, 30)
		groups = append(groups, groupTexts{old: old, new: old + " " + benchWords(r, 4)})
	}
	c, _ := changeOf(12, groups...)
	return c
}

// filledStore returns a store on disk with the subscriptions of each document, 1 to 4 keywords
// each, and a filter over them.
func filledStore(b *testing.B, documents, subscriptions int) *store.DB {
	b.Helper()
	db, err := store.Open(store.Options{Dir: b.TempDir(), Lanes: 1, MemTable: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	r, langs := rand.New(rand.NewPCG(1, 2)), text.NewLanguages()
	for i := range documents {
		err := db.Write(false, func(batch *store.Batch) (err error) {
			st := benchState{db, batch, benchPage(i)}
			t := newTestTable(langs)
			for k := range subscriptions {
				s := newStamped(k, k+1, 0, flow.Forever)
				s.Subscription.URL, s.Subscription.Stem = st.key, r.IntN(2) == 0
				for range 1 + r.IntN(4) {
					s.Subscription.Keywords = append(s.Subscription.Keywords, benchWords(r, 1+r.IntN(2)))
				}
				s.Subscription = s.Subscription.WithDefaults()
				value, encodeErr := stored.Encode(flow.KeptFormat, s)
				err = errors.Join(err, encodeErr, st.Set(flow.KeptSubscriptions+s.Name(), value))
				t.add(strings.TrimPrefix(s.Name(), s.Document), &s)
			}
			return errors.Join(err, storeValue(st, stateName(kindFilter, "inc", "doc"), t.index.buildFilter(langs.Analysis())))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return db
}

// benchState is the state of one page in a store. Its reads do not see what the batch holds.
type benchState struct {
	db    *store.DB
	batch *store.Batch
	key   string
}

var _ flow.State = benchState{}

func (s benchState) Get(name string) ([]byte, bool, error) {
	return s.db.GetState(flow.GroupMatch, 0, s.key, name)
}

func (s benchState) Set(name string, value []byte) error {
	s.batch.SetState(flow.GroupMatch, 0, s.key, name, value)
	return nil
}

func (s benchState) Delete(string) error { return errors.ErrUnsupported }

func (s benchState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return s.db.ScanState(flow.GroupMatch, 0, s.key, prefix)
}
