package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of Subscription.Tags.
const (
	MaxTags      = 20
	maxTagLength = 50 // characters
)

// checkTags reports what is wrong with the tags of a subscription.
func checkTags(tags []string, bad func(field, format string, args ...any)) {
	if len(tags) > MaxTags {
		bad("tags", "%d tags are too many; at most %d", len(tags), MaxTags)
		return
	}
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		switch {
		case tag == "":
			bad(field, "a tag must not be empty")
		case utf8.RuneCountInString(tag) > maxTagLength:
			bad(field, "a tag of %d characters is too long; at most %d", utf8.RuneCountInString(tag), maxTagLength)
		case strings.ContainsFunc(tag, func(r rune) bool { return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r) }):
			bad(field, "%q has a blank, a comma or a control character; write a word such as shop or team-a", tag)
		case slices.Contains(tags[:i], tag):
			bad(field, "%q is listed twice", tag)
		}
	}
}
