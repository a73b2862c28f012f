package match

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
)

// Check returns what is wrong with the windows of c, or nil: tokens ascend and lie within the
// text, none is empty, edits ascend and lie within the tokens.
func Check(c *pipeline.Change) error {
	for g := range c.Groups {
		for _, side := range [2][]pipeline.Window{c.Groups[g].Old, c.Groups[g].New} {
			for i := range side {
				w := &side[i]
				if !ascend(w.Tokens, len(w.Text), 1) || !ascend(w.Edits, len(w.Tokens), 0) {
					return fmt.Errorf("change %s: group %d: a window whose tokens or edits do not fit its text", c.ID, g)
				}
			}
		}
	}
	return nil
}

// ascend reports whether the spans are in order, within limit, and of at least the given length.
func ascend(spans []pipeline.Span, limit, least int) bool {
	end := 0
	for _, s := range spans {
		if s[0] < end || s[1] < s[0]+least || s[1] > limit {
			return false
		}
		end = s[1]
	}
	return true
}
