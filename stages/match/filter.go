package match

import (
	"github.com/bits-and-blooms/bloom/v3"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// filtered is the name under which a document's filter is stored.
const filtered = "filter"

// falsePositives is how often a key that is not in a filter seems to be. A change asks
// for some hundred keys, and one suffices to open the gate.
const falsePositives = 1e-5

// filter is a gate in front of a document's table: a Bloom filter over the keys of its
// index. Where a table is not in memory, it spares the change that touches none of its
// keywords the reading and indexing of all subscriptions, at three bytes for a keyword.
// In front of a table in memory it would only cost time.
type filter struct {
	// Made names the run of the program and the state of its languages that made the keys:
	// another may have other stemmers.
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

// filterKey names a term, or with b a pair of them.
func filterKey(part, class int, a, b string) string {
	return string(rune(part)) + string(rune(class)) + a + nul + b
}

// readFilter returns a stored filter, or one that fits nothing.
func readFilter(value []byte) *filter {
	f := new(filter)
	if get(value, f) != nil || f.Bits == nil {
		return new(filter)
	}
	return f
}

// mayTouch reports whether c may touch a keyword; false is certain.
func (f *filter) mayTouch(c *pipeline.Change, langs *text.Languages) bool {
	for k, p := range f.Parts {
		// An index without patterns, to read the windows with.
		x := &index{norm: langs.Normalizer(p.Language), moved: p.Moved, longest: p.Reach + 1}
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

// window reports whether a key of part k may stand near an edit of w.
func (f *filter) window(x *index, k int, w *window) bool {
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
