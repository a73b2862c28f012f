package diff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
)

// TestItemThatGrewOlder: an item of which so much is its age that it counts as gone and come is muted as a whole, and
// one that comes with another name is told.
func TestItemThatGrewOlder(t *testing.T) {
	item := func(name, age string) string {
		return string(pipeline.ItemStart) + name + "\nhera released this " + age + " ago\nNotes of " + name + " and some fixes\n" + string(pipeline.ItemEnd)
	}
	const rest = "Releases\n"
	others := "" // the more there are, the less their words say of each
	for n := range 6 {
		others += item(fmt.Sprintf("v1.%d.0", 6-n), fmt.Sprintf("%d days", 2+20*n))
	}
	for _, tt := range []struct {
		name, new string
		told      bool
	}{
		{"older", item("v2.3.0", "1 hour"), false},
		{"another", item("v2.4.0", "1 hour"), true},
		{"younger", item("v2.3.0", "3 seconds"), true},
	} {
		c, ok := diff.ChangeOf(flow.Snapshot{
			N: 2, Previous: 1, Elapsed: 10 * time.Minute,
			Old: rest + item("v2.3.0", "52 minutes") + others, New: rest + tt.new + others,
		})
		if !ok {
			t.Fatalf("%s: no change", tt.name)
		}
		told := false
		for _, g := range c.Groups {
			for _, d := range g.Differences {
				told = told || d.Muted == ""
			}
		}
		if size := c.Size.Told(false); told != tt.told || (size.Removed+size.Added > 0) != tt.told {
			t.Errorf("%s: told is %v, want %v; size without what is muted: %+v; groups: %+v", tt.name, told, tt.told, size, c.Groups)
		}
	}
}
