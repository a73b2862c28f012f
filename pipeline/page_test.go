package pipeline

import (
	"strings"
	"testing"
)

func TestCompilePattern(t *testing.T) {
	for _, p := range []string{"", `\d{1,2}:\d{2} Uhr`, `[0-9a-f]{64}`, `(?i)updated .{0,200} ago`, strings.Repeat("ä", 900), `\p{L}+(-\p{L}+)*`} {
		if re, err := compilePattern(p); err != nil || re.String() != p {
			t.Errorf("%.40q: got %v, %v", p, re, err)
		}
	}
	for p, want := range map[string]string{
		"(":                                 `"(" is not a regular expression`,
		`(a{1,30}){1,30}z`:                  "instructions, and at most 1000",
		`(?:a?){1000}(?:a?){1000}z`:         "instructions, and at most 1000",
		`((a{1,25}){1,25}z){1,1}`:           "instructions, and at most 1000",
		strings.Repeat("(a{1,9}){1,9}", 77): "too long",
		strings.Repeat("x", 1001):           "too long",
	} {
		if _, err := compilePattern(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", p, err, want)
		}
	}
}
