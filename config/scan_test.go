package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestBounds: what would take the parser hours or gigabytes is refused before it is parsed.
func TestBounds(t *testing.T) {
	const n = 20_000
	var keys, maps, aliases strings.Builder
	for i := range n {
		fmt.Fprintf(&keys, "k%d: x\n", i)
	}
	for range 200 {
		maps.WriteString("-\n" + strings.Repeat(" a:\n", 1000))
	}
	for range n {
		aliases.WriteString("- *a\n")
	}
	for name, tc := range map[string]struct{ data, want string }{
		"brackets":            {strings.Repeat("[", n), "c.yaml:1:51: the configuration is nested too deeply; at most 50 levels"},
		"braces":              {strings.Repeat("{a: ", n), "nested too deeply"},
		"both":                {"a: " + strings.Repeat("[{x: ", n), "nested too deeply"},
		"dashes":              {strings.Repeat("- ", n), "nested too deeply"},
		"lines":               {nested(60), "nested too deeply"},
		"explicit keys":       {strings.Repeat("? ", n), "too many tags"},
		"keys":                {keys.String(), "too many keys"},
		"equal keys":          {strings.Repeat("a:\n", n), "too many keys"},
		"many mappings":       {maps.String(), "too many keys"},
		"aliases in brackets": {"a: &a x\nb: [" + strings.Repeat("*a, ", n) + "]", "too many anchors and aliases"},
		"aliases in lines":    {"a: &a x\nb:\n" + aliases.String(), "too many anchors and aliases"},
		"anchors":             {"a: " + strings.Repeat("&a ", n), "too many anchors and aliases"},
		"tags":                {"a: " + strings.Repeat("!!a ", n), "too many tags"},
		"commas":              {"a: [" + strings.Repeat(",", maxSigns) + "]", "c.yaml:1:1: the configuration is too large"},
		"values":              {amplified(), "with its aliases resolved it has more than 1000000 values"},
	} {
		_, err := Parse("c.yaml", []byte(tc.data), options(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %.300v, want %q", name, err, tc.want)
		}
	}
	for name, data := range map[string]string{"levels": nested(20), "two documents": nested(20) + "---\n" + nested(20)} {
		if _, err := Parse("c.yaml", []byte(data), options(nil)); err == nil || strings.Contains(err.Error(), "nested") {
			t.Errorf("%s: got %v, which is no refusal of the nesting", name, err)
		}
	}
}

// nested returns a mapping of that many levels, of which every second is a list.
func nested(levels int) string {
	var b strings.Builder
	for i := range levels / 2 {
		fmt.Fprintf(&b, "%sa:\n%s- b: x\n", strings.Repeat("  ", 2*i), strings.Repeat("  ", 2*i))
		if i < levels/2-1 {
			fmt.Fprintf(&b, "%sc:\n", strings.Repeat("  ", 2*i+1))
		}
	}
	return b.String()
}

// amplified returns 9000 aliases of a subscription with 1000 keywords.
func amplified() string {
	return "subscriptions:\n- &s\n  url: https://example.com/\n  sinks: [log]\n  keywords: [" + strings.Repeat("a,", 1000) + "a]\n" + strings.Repeat("- *s\n", 9000)
}
