package match

import (
	"fmt"
	"slices"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// kindFilter begins the name under which the filter of a document is stored.
const kindFilter = "filter"

// minFilteredTable is how many subscriptions a document must have for a filter. To read and index
// fewer costs about as much as to ask the filter (docs/adr/019-filters-for-large-tables.md).
const minFilteredTable = 32

// falsePositiveRate is the rate of false positives for one key. A change looks up some hundred
// keys, and one positive suffices to read the table.
const falsePositiveRate = 1e-4

// filter is a Bloom filter over the index keys of a document's keywords, at two and a half bytes
// for a keyword. It is stored with a large table. A change that touches none of the keywords
// then does not read and index the subscriptions. A table in memory does without it: there it
// would only cost time.
type filter struct {
	// Analysis names the rules by which words became keys; see Processor.analysisID.
	Analysis string             `json:"analysis"`
	Language string             `json:"language"` // of the changes that it is for
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
	Form           text.Form `json:"form"`
	SkipsStopwords bool      `json:"skips_stopwords"`
	SkipsSigns     bool      `json:"skips_signs"`
	Near           string    `json:"near"`
}

// buildFilter returns the filter over x.
func (x *index) buildFilter(analysis string) *filter {
	f := &filter{Analysis: analysis, Language: x.language}
	var keys []string
	for k, x := range x.parts {
		p := filterPart{Language: x.norm.Language(), Reach: x.reach(), Moved: x.wantsMoved}
		words := make([][]string, len(x.classes))
		for c := range x.classes {
			p.Classes = append(p.Classes, filterClass{x.classes[c].form, x.classes[c].skipsStopwords, x.classes[c].skipsSigns, x.classes[c].near})
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
	f.Bits = bloom.NewWithEstimates(uint(max(len(keys), 1)), falsePositiveRate)
	for _, k := range keys {
		f.Bits.AddString(k)
	}
	return f
}

// filterKey is the key of a term, or with b of a pair of terms.
func filterKey(part, class int, a, b string) string {
	return string(rune(part)) + string(rune(class)) + a + nul + b
}

// analysisID names the rules by which words become keys. Those of this module's languages are the
// same after a restart. Where the program has registered stemmers or stop words, the name is that
// of this Processor and registration: another process may have registered others.
func (p *Processor) analysisID(generation uint64) string {
	if generation > 0 {
		return fmt.Sprintf("%s %s %d", text.Version, p.runID, generation)
	}
	return p.cfg.Languages.Analysis()
}

// isFilteredOut reports whether the filter stored under the name at says that c matches no keyword.
// It returns false where there is no filter, or one of another language or analysis.
func (p *Processor) isFilteredOut(st flow.State, at, analysis string, c *flow.Change) (bool, error) {
	v, ok, err := st.Get(at)
	if err != nil || !ok {
		return false, err
	}
	var f filter
	if err := decodeValue(v, &f); err != nil {
		return false, err
	}
	return f.Bits != nil && f.Analysis == analysis && f.Language == c.Language &&
		!f.mayMatch(c, p.cfg.Languages), nil
}

// dropFilter deletes the filter of a document whose subscriptions change.
func dropFilter(st flow.State, k tableKey) error {
	_, stored, err := st.Get(k.filterName())
	if err != nil || !stored {
		return err
	}
	return st.Delete(k.filterName())
}

// storeFilter stores the filter of t, if t is large and every subscription has keywords.
func (t *table) storeFilter(st flow.State, at, analysis string) error {
	if t.index.len() < minFilteredTable || len(t.index.withoutKeywords) > 0 {
		return nil
	}
	return storeValue(st, at, t.index.buildFilter(analysis))
}

// mayMatch reports whether c may match a keyword. False means that it does not.
func (f *filter) mayMatch(c *flow.Change, langs *text.Languages) bool {
	for k, p := range f.Parts {
		// An index without patterns suffices to read the windows.
		x := &patternIndex{norm: langs.Normalizer(p.Language), wantsMoved: p.Moved, longestPhrase: p.Reach + 1}
		for _, c := range p.Classes {
			x.classes = append(x.classes, class{c.Form, c.SkipsStopwords, c.SkipsSigns, c.Near})
		}
		for g := range c.Groups {
			if c.Groups[g].Moved && !p.Moved {
				continue
			}
			for _, w := range eachWindow(&c.Groups[g]) {
				if f.mayMatchWindow(x, k, &w) {
					return true
				}
			}
			if f.mayMatchNear(x, k, &c.Groups[g]) {
				return true
			}
		}
	}
	return false
}

// mayMatchWindow reports whether a key of part k may be near an edit of w.
func (f *filter) mayMatchWindow(x *patternIndex, k int, w *window) bool {
	for c := range x.classes {
		keep := x.keepFunc(uint8(c), w)
		regions := w.searchRegions(x.reach(), keep)
		if x.classes[c].near != "" {
			regions = []flow.Span{{0, len(w.Tokens)}}
		}
		for _, r := range regions {
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

// mayMatchNear reports whether a key of part k may be in a passage of g, for keywords beside which changes
// are reported.
func (f *filter) mayMatchNear(x *patternIndex, k int, g *flow.Group) bool {
	if !slices.ContainsFunc(x.classes, func(c class) bool { return c.near != "" }) {
		return false
	}
	for _, p := range slices.Concat(g.OldPassages, g.NewPassages) {
		for w := range blocksOf(p.Offset, p.Text) {
			if f.mayMatchWindow(x, k, &w) {
				return true
			}
		}
	}
	return false
}
