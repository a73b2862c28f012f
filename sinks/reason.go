package sinks

import (
	"strings"
	"unicode"
)

// maxReason bounds what is kept of an error, in bytes.
const maxReason = 400

// oneLine makes s fit for logs and records: one line of valid UTF-8 without control
// characters, cut at a rune.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			space = b.Len() > 0
			continue
		}
		if b.Len() >= maxReason {
			return b.String() + "..."
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
