package diff

import (
	"slices"
	"strings"
	"testing"
)

// TestTitles compares lists in which several items change at once, and only their titles say which is which.
func TestTitles(t *testing.T) {
	rows := func(all ...string) string {
		var b strings.Builder
		for _, row := range all {
			b.WriteString("\x02" + strings.ReplaceAll(row, "|", "\n") + "\n\x03")
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		old, new string
		want     []string // what became of which item
	}{
		"rooms": {rows("Room 1|free", "Room 2|free", "Room 3|free", "Room 4|held"), rows("Room 1|free", "Room 2|free", "Room 3|full", "Room 4|free"),
			[]string{"changed Room 3", "changed Room 4"}},
		"times": {rows("9:00|sold out for good", "10:00|back in two weeks", "11:00|free"), rows("9:00|back in two weeks", "10:00|free", "11:00|free"),
			[]string{"changed back in two weeks", "changed free"}},
		"states longer than names": {rows("Cup|in stock", "Bow|out of stock, back in two weeks"), rows("Cup|out of stock, back in two weeks", "Bow|in stock"),
			[]string{"changed Cup", "changed Bow"}},
		"labels": {rows("Cup: in stock", "Bow: out of stock, back in two weeks"), rows("Cup: out of stock, back in two weeks", "Bow: in stock"),
			[]string{"changed Cup: out of stock, back in two weeks", "changed Bow: in stock"}},
		"a third cell": {rows("Room 1|free|upstairs", "Room 2|held|upstairs"), rows("Room 1|held|upstairs", "Room 2|free|upstairs"),
			[]string{"changed Room 1", "changed Room 2"}},
		"ranks":          {rows("1|Ares|7", "2|Zeus|6", "3|Hera|5"), rows("1|Zeus|8", "2|Ares|7", "3|Hera|5"), []string{"changed Ares", "changed Zeus"}},
		"labelled ranks": {rows("rank: 1|name: Ares", "rank: 2|name: Zeus"), rows("rank: 1|name: Zeus", "rank: 2|name: Ares"), []string{"changed Ares", "changed Zeus"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range Diff(analyze(tt.old), analyze(tt.new)) {
				if g.Item != "" {
					got = append(got, g.Item+" "+g.Title)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
