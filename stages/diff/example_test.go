package diff_test

import (
	"fmt"

	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
)

// What was removed and added between two versions of a text.
func ExampleTexts() {
	for _, d := range diff.Texts("Zeus\nNow in stock.\n", "Zeus\nNow out of stock.\nAsk for Hera!\n") {
		fmt.Printf("%s %q\n", d.Event, d.Text)
	}
	// Output:
	// removed "in"
	// added "out of"
	// added "Ask for Hera"
}

// Two versions of a text of one's own: each line is a block.
func ExampleDiff() {
	old := text.Analyze("Zeus, in bronze\nNow in stock.\nShips within a week.\n")
	new := text.Analyze("Zeus, in bronze\nNow out of stock.\nShips within a week.\nAsk for Hera instead!\n")
	for i, g := range diff.Diff(old, new) {
		for _, d := range g.Differences {
			fmt.Printf("group %d: %s %q at %d\n", i, d.Event, d.Text, d.Offset)
		}
	}
	// Output:
	// group 0: removed "in" at 20
	// group 0: added "out of" at 20
	// group 1: added "Ask for Hera instead" at 55
}
