package diff

import (
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

func TestSize(t *testing.T) {
	const long = "Zeus rules the sky and throws bolts of lightning at those who break their oaths\n"
	const other = "Hera keeps a garden with golden apples far in the west beyond the river Okeanos\n"
	for name, c := range map[string]struct {
		old, new string
		limits   limits
		want     flow.Size
	}{
		"one word replaced":         {"Zeus is in stock\n", "Zeus is out stock\n", defaultLimits, flow.Size{Removed: 1, Added: 1, Old: 4, New: 4}},
		"words added":               {"Zeus is here\n", "Zeus is here at last today\n", defaultLimits, flow.Size{Added: 3, Old: 3, New: 6}},
		"two paragraphs":            {"Zeus one\nHera two\n", "Zeus three\nHera\n", defaultLimits, flow.Size{Removed: 2, Added: 1, Old: 4, New: 3}},
		"only spacing":              {"Zeus  is here\n", "Zeus is here\n", defaultLimits, flow.Size{Old: 3, New: 3}},
		"a paragraph moved":         {long + other, other + long, defaultLimits, flow.Size{Moved: 15, Old: 30, New: 30}},
		"too much to find the rest": {long + other, other + "Argus\n", limits{}, flow.Size{Removed: 15, Added: 1, Old: 30, New: 16}},
	} {
		old, new := text.Analyze(c.old), text.Analyze(c.new)
		groups, _ := diffWithin(old, new, c.limits)
		if got := changeSize(old, new, groups); got != c.want {
			t.Errorf("%s: got %+v, want %+v of %+v", name, got, c.want, groups)
		}
	}
}
