package match

import (
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// table is the indexed subscriptions of one document, for changes in one language: those that stand, and those that
// ended and are still due for changes of the backlog. It holds their keywords; the rest of a subscription is read from
// the state when a keyword is found. What happens to one page is handled one at a time, so a table needs no lock.
type table struct {
	language   string
	generation uint64 // of the languages
	epoch      uint64 // of the page
	index      *index
	// followed are the names of subscriptions that are there because other pages link to this one.
	followed map[string]bool
	// edited are the names of subscriptions that changed since they were read.
	edited []string
}

// maxEdited is how many changes a table catches up on; after more it is made again.
const maxEdited = 1024

// tableKey is the key of a table in the cache.
type tableKey struct{ incarnation, document string }

// endedPrefix begins the names of the ended subscriptions in the state of match.
func (k tableKey) endedPrefix() string { return stateName(kindEnded, k.incarnation, k.document, "") }

func (k tableKey) filterName() string { return stateName(kindFilter, k.incarnation, k.document) }

// records are the subscriptions of a document in the state. Their names are those in a table: behind the document where
// they stand, with a stamp where they ended.
type records struct {
	tableKey
	standing flow.State // of index
	ended    flow.State // of match
}

func recordsOf(tx flow.Tx, key string, k tableKey) records {
	return records{k, tx.StateOf(flow.GroupIndex, key), tx.State(key)}
}

// read returns the subscription with that name, or nil if there is none.
func (r records) read(name string) (*flow.Stamped, error) {
	if strings.Contains(name, nul) {
		return readRecord(r.ended, r.endedPrefix()+name)
	}
	v, ok, err := r.standing.Get(flow.KeptSubscriptions + r.document + name)
	if err != nil || !ok {
		return nil, err
	}
	s, err := flow.StampedFrom(v)
	if err != nil || s.PageIncarnation != r.incarnation {
		return nil, err
	}
	return s, nil
}

// all calls add with each subscription.
func (r records) all(add func(name string, s *flow.Stamped)) error {
	prefix := flow.KeptSubscriptions + r.document
	for n, v := range r.standing.Scan(prefix) {
		if v.Err != nil {
			return v.Err
		}
		s, err := flow.StampedFrom(v.Bytes)
		if err != nil {
			return err
		}
		if s.PageIncarnation == r.incarnation {
			add(n[len(prefix):], s)
		}
	}
	prefix = r.endedPrefix()
	for n, v := range r.ended.Scan(prefix) {
		if v.Err != nil {
			return v.Err
		}
		s := new(flow.Stamped)
		if err := decodeValue(v.Bytes, s); err != nil {
			return err
		}
		add(n[len(prefix):], s)
	}
	return nil
}

// add adds the subscription with that name, in place of its earlier state.
func (t *table) add(name string, s *flow.Stamped) {
	t.remove(name)
	name = strings.Clone(name) // a substring would keep the whole
	t.index.add(name, s.Subscription)
	if s.Followed != nil {
		t.followed[name] = true
	}
}

func (t *table) remove(name string) {
	t.index.remove(name)
	delete(t.followed, name)
}

// catchUp reads the subscriptions again that changed. It returns false if t must be made again.
func (t *table) catchUp(r records) (bool, error) {
	for _, name := range t.edited {
		s, err := r.read(name)
		switch {
		case err != nil:
			return false, err
		case s == nil:
			t.remove(name)
		default:
			t.add(name, s)
		}
	}
	t.edited = nil
	return !t.index.needsRebuild(), nil
}

// size is about how many bytes t takes.
func (t *table) size() int64 {
	n := 1<<10 + 100*len(t.index.names)
	for _, p := range t.index.parts {
		n += 180 * len(p.patterns)
	}
	return int64(n)
}

// noteEdits makes the table of k, if it is in memory, read these subscriptions again.
func (p *Processor) noteEdits(k tableKey, names []string) {
	t, ok := p.cache.Get(k)
	if !ok {
		return
	}
	if t.edited = append(t.edited, names...); len(t.edited) > maxEdited {
		p.cache.Take(k)
	}
}

// warnUnstemmed says once for each language that a subscription wants stems of which the program gave no stemmer.
func (p *Processor) warnUnstemmed(language, url string) {
	if _, said := p.unstemmed.LoadOrStore(language, true); !said {
		p.cfg.Logger.Warn("a subscription wants stems and its page is in a language whose stemmer was not given, so words are compared as they stand; "+
			"add the one of pipeline/text/stemmers to Config.Stemmers", "language", language, "url", url)
	}
}

// tableFor returns the subscriptions of c's document. It returns nil where the stored filter says that c matches none
// of their keywords.
func (p *Processor) tableFor(tx flow.Tx, key string, c *flow.Change, r records) (*table, error) {
	generation, epoch := p.cfg.Languages.Generation(), p.cfg.Epoch(key)
	// Until the commit nobody else gets it, and never if there is none: it may have caught up on what does not stand.
	t, ok := p.cache.Take(r.tableKey)
	if ok = ok && t.language == c.Language && t.generation == generation && t.epoch == epoch; ok {
		var err error
		if ok, err = t.catchUp(r); err != nil {
			return nil, err
		}
	}
	if !ok {
		at, analysis := r.filterName(), p.analysisID(generation)
		closed, err := p.isFilteredOut(r.ended, at, analysis, c)
		if err != nil || closed {
			return nil, err
		}
		t = &table{language: c.Language, generation: generation, epoch: epoch, index: newIndex(c.Language, p.cfg.Languages), followed: map[string]bool{}}
		unstemmed := text.HasStems(c.Language) && !p.cfg.Languages.Normalizer(c.Language).HasStemmer()
		if err := r.all(func(name string, s *flow.Stamped) {
			t.add(name, s)
			if unstemmed && s.Subscription.Stem && s.Subscription.Language == "" {
				p.warnUnstemmed(c.Language, c.URL)
			}
		}); err != nil {
			return nil, err
		}
		if err := t.storeFilter(r.ended, at, analysis); err != nil {
			return nil, err
		}
	}
	tx.OnCommit(func() { p.cache.Put(r.tableKey, t, t.size()) })
	return t, nil
}
