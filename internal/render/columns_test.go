package render

import "testing"

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text          string
		columns, hang int
		want          string
	}{
		{"one two three", 0, 0, "one two three"},
		{"one two three", 13, 0, "one two three"},
		{"one two three", 8, 0, "one two\nthree"},
		{"  one two three", 8, 2, "  one\n    two\n    three"},
		{"one\n  2  x", 4, 0, "one\n  2 \n  x"},
		{"https://example.com/ is long", 10, 0, "https://example.com/\nis long"},
		{"日本 日本", 5, 0, "日本\n日本"},
	} {
		if got := Wrap(c.text, c.columns, c.hang); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}
