package inspect

import (
	"github.com/vokter/vokter/pipeline/text"
)

// minSimilarity is the least similarity of two texts that are listed together.
const minSimilarity = 0.85

// maxBucketSize bounds how many texts with an equal band a text is compared with, so that very many
// pages of one template take time in proportion to their number.
const maxBucketSize = 32

// Duplicate is a group of documents whose texts are the same or similar.
type Duplicate struct {
	// Similarity is that of the document which is the least similar to the first one.
	Similarity float64 `json:"similarity"`
	// Documents are in the order of their URLs, and those of a page in the order of the page.
	Documents []DuplicateDocument `json:"documents"`
}

// DuplicateDocument is a document with the URL of its page.
type DuplicateDocument struct {
	URL string `json:"url"`
	// Similarity is how similar the text is to that of the first document of the group: 1 where it
	// is the same, and otherwise the estimated share, below 1, of the runs of three words that the
	// two texts have in common.
	Similarity float64 `json:"similarity"`
	Document
}

// Duplicates returns the groups of documents of several pages whose texts are the same, or of
// which about 85 % or more is. The groups are in the order of their first documents, and no document is
// in two of them. Texts of fewer than 52 words, and all texts where the ListFilter did not ask for
// sketches, are in a group only if they are the same.
//
// Similar texts are found by the bands of their sketches. Similarities are estimates with a standard
// error of about 0.03: texts of which 95 % is the same are hardly ever missed, and of those of which
// 80 % is a few are listed. The time grows with the number of documents, not with its square.
func (l Listing) Duplicates() []Duplicate {
	s := duplicateFinder{placements: make(map[string]placement), buckets: make(map[uint64][]int)}
	for _, p := range l.Pages {
		for _, d := range p.Documents {
			if d.TextHash != "" {
				s.add(p.URL, d)
			}
		}
	}
	found := []Duplicate{}
	for _, g := range s.groups {
		if g.Documents[0].URL != g.Documents[len(g.Documents)-1].URL { // pages stand in order
			found = append(found, g.Duplicate)
		}
	}
	return found
}

// duplicateFinder groups documents. Each group has a first text, with which all others are compared, so
// that a chain of similar texts does not unite two that are not similar.
type duplicateFinder struct {
	groups     []textGroup
	placements map[string]placement // by the hash of a text
	// buckets are the groups with a sketch by each of its bands.
	buckets map[uint64][]int
	lookups int // calls of mostSimilarGroup
}

// textGroup holds the documents whose texts are similar to its first text.
type textGroup struct {
	Duplicate
	sketch     text.Sketch // of the first text
	lastLookup int         // the last call of mostSimilarGroup that compared it
}

// placement is the group of a text, and how similar the text is to the first one.
type placement struct {
	group      int
	similarity float64
}

// add puts the document d of the page url into the group of its text.
func (s *duplicateFinder) add(url string, d Document) {
	at, ok := s.placements[d.TextHash]
	if !ok {
		at = s.placeNew(d.Sketch)
		s.placements[d.TextHash] = at
	}
	d.Sketch = nil // of no use to a reader
	g := &s.groups[at.group]
	g.Similarity = min(g.Similarity, at.similarity)
	g.Documents = append(g.Documents, DuplicateDocument{url, at.similarity, d})
}

// placeNew puts a new text, with its packed sketch if it has one, into the most similar group, or
// into a new one. It returns its placement.
func (s *duplicateFinder) placeNew(packed []byte) placement {
	sketch, ok := text.UnpackSketch(packed)
	if ok {
		if at, found := s.mostSimilarGroup(&sketch); found {
			return at
		}
	}
	s.groups = append(s.groups, textGroup{Duplicate: Duplicate{Similarity: 1}, sketch: sketch})
	if ok {
		s.addToBuckets(len(s.groups) - 1)
	}
	return placement{len(s.groups) - 1, 1}
}

// addToBuckets puts group g into the buckets of its bands, as far as these are not full.
func (s *duplicateFinder) addToBuckets(g int) {
	for _, band := range s.groups[g].sketch.Bands() {
		if len(s.buckets[band]) < maxBucketSize {
			s.buckets[band] = append(s.buckets[band], g)
		}
	}
}

// mostSimilarGroup returns the placement of another text in the group whose first text is the most similar to
// it; ok is false where none is similar enough.
func (s *duplicateFinder) mostSimilarGroup(sketch *text.Sketch) (at placement, ok bool) {
	s.lookups++
	for _, band := range sketch.Bands() {
		for _, i := range s.buckets[band] {
			g := &s.groups[i]
			if g.lastLookup == s.lookups {
				continue
			}
			g.lastLookup = s.lookups
			if n := g.sketch.Similarity(sketch); n >= minSimilarity && n > at.similarity {
				at, ok = placement{i, n}, true
			}
		}
	}
	at.similarity = min(at.similarity, equalSketchSimilarity)
	return at, ok
}

// equalSketchSimilarity is the similarity of texts that are not the same but have equal sketches.
const equalSketchSimilarity = 0.99
