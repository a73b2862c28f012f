package match

import (
	"container/list"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// table is the indexed subscriptions of one document as of one stamp. It is immutable.
type table struct {
	stamp      uint64
	generation uint64 // of the languages
	matcher    *Matcher
	records    map[string]*flow.Stamped // by the ID of their Entry
}

func newTable(stamp uint64, records map[string]*flow.Stamped, build func([]Entry) *Matcher) *table {
	entries := make([]Entry, 0, len(records))
	for id, s := range records {
		entries = append(entries, Entry{id, s.Subscription})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return &table{stamp: stamp, matcher: build(entries), records: records}
}

// cache holds the most recently used tables. A table's key covers everything that it was made
// from, so a table from a transaction that failed does no harm.
type cache struct {
	limit int

	mu    sync.Mutex
	size  int
	used  *list.List // of *cached, the latest first
	items map[docKey]*list.Element
}

type docKey struct{ incarnation, document string }

type cached struct {
	key docKey
	*table
}

func newCache(limit int) *cache {
	return &cache{limit: limit, used: list.New(), items: map[docKey]*list.Element{}}
}

// weight is more than 0 for an empty table, so that tables without subscriptions are bounded
// too.
func (t *table) weight() int { return len(t.records) + 10 }

func (c *cache) get(k docKey, stamp, generation uint64) *table {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[k]
	if e == nil {
		return nil
	}
	t := e.Value.(*cached).table
	if t.stamp != stamp || t.generation != generation {
		return nil
	}
	c.used.MoveToFront(e)
	return t
}

// put adds t and evicts the least recently used tables. t itself stays, however large it is.
func (c *cache) put(k docKey, t *table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.items[k])
	c.items[k] = c.used.PushFront(&cached{k, t})
	c.size += t.weight()
	for c.size > c.limit && c.used.Len() > 1 {
		c.remove(c.used.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	if e == nil {
		return
	}
	c.used.Remove(e)
	v := e.Value.(*cached)
	c.size -= v.weight()
	delete(c.items, v.key)
}

// drop removes the tables of an incarnation.
func (c *cache) drop(incarnation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.items {
		if k.incarnation == incarnation {
			c.remove(e)
		}
	}
}

// table returns the subscriptions of c's document as of the stamp applied, or nil if c cannot
// match any of their keywords.
func (p *Processor) table(st flow.State, c *flow.Change, applied uint64) (*table, error) {
	langs := p.cfg.Languages
	generation := langs.Generation()
	made := fmt.Sprint(p.run, " ", generation)
	k := docKey{c.Incarnation, c.Document}
	if t := p.cache.get(k, applied, generation); t != nil {
		return t, nil
	}
	at := name(filtered, c.Incarnation, c.Document)
	v, ok, err := st.Get(at)
	if err != nil {
		return nil, err
	}
	if ok {
		f := readFilter(v)
		if f.Made == made && f.Stamp == applied && f.Language == c.Language && !f.mayTouch(c, langs) {
			return nil, nil
		}
	}
	records, err := load(st, c.Incarnation, c.Document, c.Version)
	if err != nil {
		return nil, err
	}
	t := newTable(applied, records, func(es []Entry) *Matcher { return NewMatcher(es, langs) })
	t.generation = generation
	if err := put(st, at, t.matcher.filter(made, applied, c.Language)); err != nil {
		return nil, err
	}
	p.cache.put(k, t)
	return t, nil
}

// filtered is the name under which a document's filter is stored.
const filtered = "filter"

// falsePositives is the rate of false positives for one key. A change looks up some hundred
// keys, and one positive suffices to load the table.
const falsePositives = 1e-5

// filter is a Bloom filter over the keys of a document's index, at three bytes for a keyword.
// If the table is not in memory, a change that matches no keyword need not load and index all
// subscriptions. It is not used for a table in memory, where it would only cost time.
type filter struct {
	// Made identifies the process, and the version of its languages, that made the keys:
	// another process may have other stemmers.
	Made     string             `json:"made"`
	Stamp    uint64             `json:"stamp"`
	Language string             `json:"language"`
	Parts    []filterPart       `json:"parts"`
	Bits     *bloom.BloomFilter `json:"bits"`
}

// filterPart is how one index of the table reads a text.
type filterPart struct {
	Language string        `json:"language"`
	Classes  []filterClass `json:"classes"`
	Reach    int           `json:"reach"`
	Moved    bool          `json:"moved"`
}

type filterClass struct {
	Form     text.Form `json:"form"`
	Filtered bool      `json:"filtered"`
}

// filter returns the filter over m for changes in language.
func (m *Matcher) filter(made string, stamp uint64, language string) *filter {
	f := &filter{Made: made, Stamp: stamp, Language: language}
	var keys []string
	for k := range m.parts {
		x := m.index(k, language)
		p := filterPart{Language: x.norm.Language(), Reach: x.reach(), Moved: x.moved}
		words := make([][]string, len(x.classes))
		for c := range x.classes {
			p.Classes = append(p.Classes, filterClass{x.classes[c].form, x.classes[c].filtered})
			words[c] = make([]string, len(x.dicts[c])+1)
			for term, id := range x.dicts[c] {
				words[c][id] = term
			}
		}
		for q := range x.postings {
			keys = append(keys, filterKey(k, int(q.class), words[q.class][q.a], words[q.class][q.b]))
		}
		f.Parts = append(f.Parts, p)
	}
	f.Bits = bloom.NewWithEstimates(uint(max(len(keys), 1)), falsePositives)
	for _, k := range keys {
		f.Bits.AddString(k)
	}
	return f
}

// filterKey is the key of a term, or with b of a pair of terms.
func filterKey(part, class int, a, b string) string {
	return string(rune(part)) + string(rune(class)) + a + nul + b
}

// readFilter decodes a stored filter. If it cannot, it returns one that is never used.
func readFilter(value []byte) *filter {
	f := new(filter)
	if get(value, f) != nil || f.Bits == nil {
		return new(filter)
	}
	return f
}

// mayTouch reports whether c may match a keyword. False means that it does not.
func (f *filter) mayTouch(c *flow.Change, langs *text.Languages) bool {
	for k, p := range f.Parts {
		// An index without patterns suffices to read the windows.
		x := &patternIndex{norm: langs.Normalizer(p.Language), moved: p.Moved, longest: p.Reach + 1}
		for _, c := range p.Classes {
			x.classes = append(x.classes, class{c.Form, c.Filtered})
		}
		for g := range c.Groups {
			if c.Groups[g].Moved && !p.Moved {
				continue
			}
			for _, w := range eachWindow(&c.Groups[g]) {
				if f.window(x, k, &w) {
					return true
				}
			}
		}
	}
	return false
}

// window reports whether a key of part k may be near an edit of w.
func (f *filter) window(x *patternIndex, k int, w *window) bool {
	for c := range x.classes {
		keep := x.keep(uint8(c), w)
		for _, r := range w.regions(x.reach(), keep) {
			last := ""
			for i := r[0]; i < r[1]; i++ {
				if !keep(i) {
					continue
				}
				term := x.norm.Term(w.token(i), x.classes[c].form)
				if f.Bits.TestString(filterKey(k, c, term, "")) || last != "" && f.Bits.TestString(filterKey(k, c, last, term)) {
					return true
				}
				last = term
			}
		}
	}
	return false
}
