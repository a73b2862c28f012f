package text

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestKeysOfLongItems: the blocks of a long item have its key; items in it have their own, or none. Long items are
// known where another of their list stands beside them.
func TestKeysOfLongItems(t *testing.T) {
	const start, end = string(pipeline.ItemStart), string(pipeline.ItemEnd)
	long := strings.Repeat("word ", 45)
	item := start + "a title\n" + long + "\n" + start + "part one\n" + end + "and more\n" + end
	a, b := pipeline.KeyOf(1, 1), pipeline.KeyOf(1, 2)
	d := analyze(item+item+"the end\n", []pipeline.Key{a, 0, b, 0})
	want := []Unit{{0, 1, a, false}, {1, 2, a, false}, {2, 3, 0, true}, {3, 4, a, false},
		{4, 5, b, false}, {5, 6, b, false}, {6, 7, 0, true}, {7, 8, b, false}, {8, 9, 0, false}}
	if len(d.Units) != len(want) {
		t.Fatalf("got %v", d.Units)
	}
	for i, u := range d.Units {
		if u != want[i] {
			t.Errorf("unit %d is %v, want %v", i, u, want[i])
		}
	}
	if len(d.LongItems) != 2 || d.LongItems[0] != (Unit{0, 4, a, true}) || d.LongItems[1] != (Unit{4, 8, b, true}) {
		t.Errorf("long items %v", d.LongItems)
	}
	if alone := analyze(item, nil); len(alone.LongItems) > 0 {
		t.Errorf("an item that stands alone: %v", alone.LongItems)
	}
}

// TestTitle: what names an item is no number and no code, if there is a name.
func TestTitle(t *testing.T) {
	for blocks, want := range map[string]string{
		"17|Lamp of brass|5": "Lamp of brass", "L1|Lamp of brass|5": "Lamp of brass", "L1|Lamp|5": "L1", "AB-17|5|yes": "AB-17",
		"iPhone15|very cheap": "iPhone15", "Lamp|made of brass": "Lamp", "5|6": "5", "id: 7|name: Lamp": "Lamp", "v1.2|many bugs": "v1.2",
	} {
		d := Analyze(strings.ReplaceAll(blocks, "|", "\n") + "\n")
		if got := d.Title(Unit{LastBlock: len(d.Blocks)}); got != want {
			t.Errorf("%s: got %q, want %q", blocks, got, want)
		}
	}
}
