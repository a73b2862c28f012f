package reading

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
)

func TestRead(t *testing.T) {
	v := index.StoredVersion{Title: "Shop", Language: "en", Packed: flow.PackText("In stock: two lanterns.\nA lantern in stock, for gods")}
	for _, c := range []struct {
		s    pipeline.Subscription
		want []Keyword
	}{
		{pipeline.Subscription{Keywords: []string{"in stock", "lantern"}, MatchCase: true}, []Keyword{{"in stock", 1, "", "", ""}, {"lantern", 1, "", "", ""}}},
		{pipeline.Subscription{Keywords: []string{"in stock"}}, []Keyword{{"in stock", 2, "", "", ""}}},
		{pipeline.Subscription{Keywords: []string{"in stok", "lanterm", "zeus"}},
			[]Keyword{{"in stok", 0, "stok", "stock", ""}, {"lanterm", 0, "lanterm", "lantern", ""}, {"zeus", 0, "", "", ""}}},
		{pipeline.Subscription{Keywords: []string{"Lantern", "stock in", "IN stock"}, MatchCase: true}, []Keyword{{"Lantern", 0, "", "", "lantern"}, {"stock in", 0, "", "", ""}, {"IN stock", 0, "", "", "In stock"}}},
		{pipeline.Subscription{Keywords: []string{"on"}}, []Keyword{{"on", 0, "", "", ""}}}, // any two letters are near others
	} {
		r, err := newReading(v, c.s)
		if err != nil || !slices.Equal(r.Keywords, c.want) || r.Title != "Shop" || r.Words != 10 || r.Unstemmed {
			t.Errorf("%v: got %+v, %v, want %v", c.s.Keywords, r, err, c.want)
		}
	}
	v.Language = ""
	if r, err := newReading(v, pipeline.Subscription{Keywords: []string{"god"}, Stem: true}); err != nil || !r.Unstemmed || r.Keywords[0].Found != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := newReading(v, pipeline.Subscription{Keywords: []string{"god"}, Stem: true, Language: "en"}); err != nil || r.Unstemmed || r.Keywords[0].Found != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}
