package inspect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/text"
)

func TestDuplicates(t *testing.T) {
	doc := func(hash string) inspect.Document { return inspect.Document{TextHash: hash} }
	l := inspect.Listing{Pages: []inspect.Page{
		{URL: "a", Documents: []inspect.Document{doc("x"), doc("x"), doc("")}}, // one page, twice
		{URL: "b", Documents: []inspect.Document{doc("y"), doc("")}},
		{URL: "c", Documents: []inspect.Document{doc("z"), doc("y")}},
	}}
	got := l.Duplicates()
	if len(got) != 1 || got[0].Similarity != 1 || got[0].Documents[0].TextHash != "y" || got[0].Documents[0].URL != "b" || got[0].Documents[1].URL != "c" {
		t.Errorf("got %+v", got)
	}
}

// randomWords are n random words.
func randomWords(r *rand.Rand, n int) []string {
	ws := make([]string, n)
	for i := range ws {
		ws[i] = fmt.Sprint("w", r.IntN(100_000))
	}
	return ws
}

// replaceEveryNth is a copy of words in which every nth is another one.
func replaceEveryNth(words []string, nth int) []string {
	out := append([]string(nil), words...)
	for i := nth / 2; i < len(out); i += nth {
		out[i] = fmt.Sprint("other", i)
	}
	return out
}

func textOf(words []string) string { return strings.Join(words, " ") + "\n" }

// TestSimilarDocuments runs the stages: a and d have the same text, b one that differs in a few
// words, c another one with the same beginning.
func TestSimilarDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 16))
	words := randomWords(r, 1000)
	texts := map[string]string{
		"a": textOf(words), "b": textOf(replaceEveryNth(words, 100)), "c": textOf(append(words[:300:300], randomWords(r, 700)...)), "d": textOf(words), "e": "short", "f": "short text",
	}
	s := newStore(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		url := "https://example.com/" + name
		s.subscribe(url, "ann", "stock")
		s.read(texts[name])
	}
	got := s.list(inspect.ListFilter{Sketches: true}).Duplicates()
	if len(got) != 1 || len(got[0].Documents) != 3 {
		t.Fatalf("got %+v", got)
	}
	g := got[0]
	for i, name := range []string{"a", "b", "d"} {
		d := g.Documents[i]
		exact := name != "b"
		if d.URL != "https://example.com/"+name || exact != (d.Similarity == 1) || d.Similarity < 0.9 || d.Sketch != nil {
			t.Errorf("got %s, similarity %v", d.URL, d.Similarity)
		}
	}
	if g.Similarity != g.Documents[1].Similarity {
		t.Errorf("the group has similarity %v", g.Similarity)
	}
	l := s.list(inspect.ListFilter{})
	if got := l.Duplicates(); len(got) != 1 || len(got[0].Documents) != 2 || l.Pages[0].Documents[0].Sketch != nil {
		t.Errorf("without sketches: got %+v", got)
	}
}

// manyPages are pages whose texts share a template: as many words of each are their own as of the
// template. Every tenth is nearly the one before.
func manyPages(n int) inspect.Listing {
	r := rand.New(rand.NewPCG(1, 100))
	var l inspect.Listing
	template := randomWords(r, 200)
	var words []string
	for i := range n {
		if i%10 == 9 {
			words = replaceEveryNth(words, 100)
		} else {
			words = append(randomWords(r, 40), template...)
		}
		d := inspect.Document{TextHash: fmt.Sprint(i)}
		if s, ok := text.NewSketch(text.Analyze(textOf(words))); ok {
			d.Sketch = s.Pack()
		}
		l.Pages = append(l.Pages, inspect.Page{URL: fmt.Sprintf("https://example.com/%07d", i), Documents: []inspect.Document{d}})
	}
	return l
}

// countPairs returns how many of the nearly equal pages of manyPages are in a group with another one,
// and how many other pages are.
func countPairs(groups []inspect.Duplicate) (found, others int) {
	for _, g := range groups {
		for _, d := range g.Documents[1:] {
			if strings.HasSuffix(d.URL, "9") {
				found++
			} else {
				others++
			}
		}
	}
	return found, others
}

// TestSimilarityIsFoundAmongMany: pages that have 70 % in common, as they are of one template, are
// not listed, and do not hide those that are nearly the same.
func TestSimilarityIsFoundAmongMany(t *testing.T) {
	const pages = 3000
	if found, others := countPairs(manyPages(pages).Duplicates()); found < pages/10*9/10 || others > pages/100 {
		t.Errorf("found %d of %d, and %d others", found, pages/10, others)
	}
}

func BenchmarkDuplicates(b *testing.B) {
	const pages = 100_000
	l := manyPages(pages)
	for b.Loop() {
		found, others := countPairs(l.Duplicates())
		b.ReportMetric(float64(found)/(pages/10), "found")
		b.ReportMetric(float64(others)/pages, "others")
	}
}
