package render

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/text"
)

func TestWindow(t *testing.T) {
	long := strings.Repeat("ä", 50) + "X" + strings.Repeat("ö", 50)
	for _, tt := range []struct {
		s     string
		at    int
		limit int
		want  string
	}{
		{"short", 2, 10, "short"},
		{long, 100, 9, "äääXööööö"},
		{long, 0, 5, "äääää"},
		{long, len(long), 5, "ööööö"},
		{"one two three four five six", 14, 14, "four five"},
	} {
		start, end := window(tt.s, tt.at, tt.limit)
		if got := tt.s[start:end]; got != tt.want {
			t.Errorf("window(%.10q, %d, %d) = %q, want %q", tt.s, tt.at, tt.limit, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ s, keyword, want string }{
		{"a concatenated cat", "cat", "cat"},
		{"Zeus is Out of stock now", "out of stock", "Out of stock"},
		{"the prices: Ärger", "arger", "Ärger"},
		{"all running dogs", "run", "running"},
		{"stock that ran out", "out stock", "out"},
		{"nothing", "else", ""},
	} {
		from, to := find(c.s, text.Tokens(c.s), c.keyword, 0)
		if got := c.s[from:to]; got != c.want {
			t.Errorf("find(%q, %q) = %q, want %q", c.s, c.keyword, got, c.want)
		}
	}
}
