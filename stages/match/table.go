package match

import (
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// table is the indexed subscriptions of one document as of one stamp, for changes in one
// language. It holds their keywords; the rest of a subscription is read from the state when a
// keyword is found. Changes of one page are handled one at a time, so a table needs no lock.
type table struct {
	recordPrefix string // of the names of the document's records; the names in a table are without it
	stamp        uint64
	generation   uint64 // of the languages
	index        *index
	// lastVersions are the records of subscriptions that ended, by name, with the last version that
	// they match.
	lastVersions map[string]uint64
	// followed are the names of records that are there because other pages link to this one.
	followed map[string]bool
}

func newTable(k tableKey, stamp, generation uint64, langs *text.Languages) *table {
	prefix := stateName(kindRecord, k.incarnation, k.document, "")
	return &table{recordPrefix: prefix, stamp: stamp, generation: generation, index: newIndex(k.language, langs), lastVersions: map[string]uint64{}, followed: map[string]bool{}}
}

// add adds the record of the document with that name, in place of its earlier state.
func (t *table) add(name string, s *flow.Stamped) {
	t.remove(name)
	t.index.add(name, s.Subscription)
	if s.Until < flow.Forever {
		t.lastVersions[name] = s.Until
	}
	if s.Followed != nil {
		t.followed[name] = true
	}
}

func (t *table) remove(name string) {
	t.index.remove(name)
	delete(t.lastVersions, name)
	delete(t.followed, name)
}

// readEntry returns the record of an entry, or nil if it was deleted.
func (t *table) readEntry(st flow.State, entry int32) (*flow.Stamped, error) {
	return readRecord(st, t.recordPrefix+t.index.names[entry])
}

// load adds all records of the document, and returns an error if one of them cannot be read.
func (t *table) load(st flow.State) error {
	for n, v := range st.Scan(t.recordPrefix) {
		if v.Err != nil {
			return v.Err
		}
		s := new(flow.Stamped)
		if err := decodeValue(v.Bytes, s); err != nil {
			return err
		}
		t.add(strings.Clone(n[len(t.recordPrefix):]), s) // a substring would keep the whole
	}
	return nil
}

// catchUp adds what the stamps after that of t up to stamp did to the document. It returns false
// if it cannot, because the last of them are too many or t is of a later stamp: t must be made
// again then.
func (t *table) catchUp(st flow.State, incarnation string, stamp uint64) (bool, error) {
	if t.stamp > stamp || stamp-t.stamp > logSize {
		return false, nil
	}
	for ; t.stamp < stamp; t.stamp++ {
		e, err := readLogEntry(st, incarnation, t.stamp+1)
		if err != nil || e == nil {
			return false, err
		}
		n, ok := strings.CutPrefix(e.Record, t.recordPrefix)
		if !ok {
			continue // it is of another document
		}
		s, err := readRecord(st, e.Record)
		switch {
		case err != nil:
			return false, err
		case s == nil:
			t.remove(n)
		default:
			t.add(strings.Clone(n), s)
		}
	}
	return !t.index.needsRebuild(), nil
}

// removeEnded removes the subscriptions that ended before version, from t and from the state: no
// version for them will come.
func (t *table) removeEnded(st flow.State, version uint64) error {
	for n, until := range t.lastVersions {
		if until >= version {
			continue
		}
		if err := st.Delete(t.recordPrefix + n); err != nil {
			return err
		}
		t.remove(n)
	}
	return nil
}

// tableKey is the key of a table in the cache. The records as of a stamp are the same at each
// attempt, so a table that a transaction which failed has made or advanced does no harm.
type tableKey struct{ incarnation, document, language string }

// size is about how many bytes t takes.
func (t *table) size() int64 {
	n := 1<<10 + 100*len(t.index.names)
	for _, p := range t.index.parts {
		n += 180 * len(p.patterns)
	}
	return int64(n)
}

// tableFor returns the subscriptions of c's document as of the stamp applied. It returns nil where
// the stored filter says that c matches none of their keywords.
func (p *Processor) tableFor(st flow.State, c *flow.Change, applied uint64) (*table, error) {
	generation := p.cfg.Languages.Generation()
	k := tableKey{c.Incarnation, c.Document, c.Language}
	t, ok := p.cache.Take(k) // nobody else gets it while it is changed
	if ok = ok && t.generation == generation; ok {
		var err error
		if ok, err = t.catchUp(st, c.Incarnation, applied); err != nil {
			return nil, err
		}
	}
	if !ok {
		at, analysis := stateName(kindFilter, c.Incarnation, c.Document), p.analysisID(generation)
		closed, err := p.isFilteredOut(st, at, analysis, c, applied)
		if err != nil || closed {
			return nil, err
		}
		t = newTable(k, applied, generation, p.cfg.Languages)
		if err := t.load(st); err != nil {
			return nil, err
		}
		if err := t.storeFilter(st, at, analysis); err != nil {
			return nil, err
		}
	}
	if err := t.removeEnded(st, c.Version); err != nil {
		return nil, err
	}
	p.cache.Put(k, t, t.size())
	return t, nil
}
