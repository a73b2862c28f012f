package index

import (
	"fmt"
	"strings"
	"testing"
)

func TestMostlyNew(t *testing.T) {
	words := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "word%d ", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"equal":         {words(0, 1000), words(0, 1000), false},
		"moved":         {words(0, 1000), words(500, 1000) + words(0, 500), false},
		"a quarter":     {words(0, 1000), words(250, 1250), false},
		"two fifths":    {words(0, 1000), words(400, 1400), true},
		"all":           {words(0, 1000), words(1000, 2000), true},
		"from nothing":  {"", words(0, 10), true},
		"to nothing":    {words(0, 10), "", true},
		"both nothing":  {"", "\n", false},
		"marks only":    {"a\nb\n", "\x02a\x03\nb", false},
		"repeats count": {"a a a a", "a", true},
	} {
		if got := mostlyNew(c.old, c.new); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func BenchmarkMostlyNew(b *testing.B) {
	old := strings.Repeat("The stock of the shop is counted every evening by those who work there, and it was never as large.\n", 200)
	changed := strings.Replace(old, "stock", "store", 40)
	b.SetBytes(int64(len(old) + len(changed)))
	for b.Loop() {
		if mostlyNew(old, changed) {
			b.Fatal("got true")
		}
	}
}
