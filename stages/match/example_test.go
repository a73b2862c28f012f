package match_test

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/match"
)

// Example matches a change made by hand: "in" became "out of" in a paragraph.
func Example() {
	change := &flow.Change{Language: "en", Groups: []flow.Group{{
		Old: []flow.Window{{Text: "Zeus is in stock.", Tokens: []flow.Span{{0, 4}, {5, 7}, {8, 10}, {11, 16}}, Edits: []flow.Span{{2, 3}}}},
		New: []flow.Window{{Text: "Zeus is out of stock.", Tokens: []flow.Span{{0, 4}, {5, 7}, {8, 11}, {12, 14}, {15, 20}}, Edits: []flow.Span{{2, 4}}}},
	}}}
	m := match.NewMatcher([]match.Entry{
		{ID: "shop", Subscription: pipeline.Subscription{Keywords: []string{"OUT OF STOCK", "Zeus"}}},
		{ID: "other", Subscription: pipeline.Subscription{Keywords: []string{"Hera"}}},
	}, text.NewLanguages())
	for _, found := range m.Match(change) {
		for _, d := range found.Diffs {
			fmt.Printf("%s: %s %q as %q in %q\n", found.ID, d.Event, d.Keyword, d.Text, d.Snippet)
		}
	}
	// Output: shop: added "OUT OF STOCK" as "out of stock" in "Zeus is out of stock."
}
