package flow

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
)

// DocumentID names the document that v makes of page, for state and IDs.
func DocumentID(page string, v pipeline.View) string {
	parts := []string{"document", page}
	list := func(name string, ss []pipeline.Selector) {
		for _, s := range ss {
			parts = append(parts, name, s.CSS, s.From, s.To)
		}
	}
	list("select", v.Select)
	list("remove", v.Remove)
	for _, re := range v.Ignore {
		parts = append(parts, "ignore", re)
	}
	if v.Confirm > 1 {
		parts = append(parts, "confirm", fmt.Sprint(v.Confirm))
	}
	return DeriveID(parts...)
}
