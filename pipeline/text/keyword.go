package text

import (
	"fmt"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// ValidKeyword returns why k cannot be a keyword, in words for the user, or nil: it has
// no token, or more than pipeline.MaxKeywordTokens.
func ValidKeyword(k string) error {
	if utf8.RuneCountInString(k) > pipeline.MaxKeywordLength {
		return nil // Subscription.Validate says that
	}
	switch n := len(Tokens(k)); {
	case n == 0:
		return fmt.Errorf("%q has no word in it; a keyword needs a letter or a digit", k)
	case n > pipeline.MaxKeywordTokens:
		return fmt.Errorf("%q has %d words; a keyword has at most %d", k, n, pipeline.MaxKeywordTokens)
	}
	return nil
}
