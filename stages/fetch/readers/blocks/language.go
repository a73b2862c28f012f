package blocks

import "strings"

// LanguageTag returns s if it looks like a BCP 47 tag, or "".
func LanguageTag(s string) string {
	s = strings.TrimSpace(s)
	primary, _, _ := strings.Cut(s, "-")
	if len(primary) < 2 || len(primary) > 3 || len(s) > 35 {
		return ""
	}
	for _, c := range s {
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return ""
		}
	}
	return s
}
