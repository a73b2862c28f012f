package flow

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestDocumentIDTellsViewsApart(t *testing.T) {
	views := []pipeline.View{
		{},
		{Select: []pipeline.Selector{{CSS: "main"}}},
		{Remove: []pipeline.Selector{{CSS: "main"}}},
		{Select: []pipeline.Selector{{From: "main"}}},
		{Select: []pipeline.Selector{{From: "main", To: "nav"}}},
		{Select: []pipeline.Selector{{CSS: "main"}, {CSS: "nav"}}},
		{Select: []pipeline.Selector{{CSS: "main"}}, Remove: []pipeline.Selector{{CSS: "nav"}}},
		{Ignore: []string{"main"}},
		{Confirm: 2},
	}
	seen := map[string]int{}
	for i, v := range views {
		id := DocumentID("http://example.com/", v)
		if j, ok := seen[id]; ok {
			t.Errorf("views %d and %d have one ID", i, j)
		}
		seen[id] = i
		if other := DocumentID("http://example.com/b", v); other == id {
			t.Errorf("view %d has one ID on two pages", i)
		}
	}
	if DocumentID("p", pipeline.View{}) != DocumentID("p", pipeline.View{Confirm: 1}) {
		t.Error("confirm 1 is what happens anyway, and must not be another document")
	}
}
