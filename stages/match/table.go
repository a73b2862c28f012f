package match

import (
	"container/list"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
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

// table returns the subscriptions of c's document as of the stamp applied. It returns nil where
// the stored filter says that c matches none of their keywords.
func (p *Processor) table(st flow.State, c *flow.Change, applied uint64) (*table, error) {
	generation := p.cfg.Languages.Generation()
	k := docKey{c.Incarnation, c.Document}
	if t := p.cache.get(k, applied, generation); t != nil {
		return t, nil
	}
	at, analysis := name(filtered, c.Incarnation, c.Document), p.analysis(generation)
	closed, err := p.closed(st, at, analysis, c, applied)
	if err != nil || closed {
		return nil, err
	}
	records, err := load(st, c.Incarnation, c.Document, c.Version)
	if err != nil {
		return nil, err
	}
	t := newTable(applied, records, func(es []Entry) *Matcher { return NewMatcher(es, p.cfg.Languages) })
	t.generation = generation
	if err := t.storeFilter(st, at, analysis, c.Language); err != nil {
		return nil, err
	}
	p.cache.put(k, t)
	return t, nil
}
