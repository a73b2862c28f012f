package match

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// table returns the subscriptions of c's document as of the stamp applied, or nil where c
// cannot touch any of their keywords.
func (p *Processor) table(st flow.State, c *pipeline.Change, applied uint64) (*table, error) {
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
