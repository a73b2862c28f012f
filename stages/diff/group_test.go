package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// groupsWithin shows which blocks belong together, as "old + old = new + new".
func groupsWithin(old, new []string, l limits) []string {
	a, b := analyze(old...), analyze(new...)
	c := &comparison{old: a, new: b, symbols: newSymbolTable(), limits: l}
	var out []string
	for _, s := range c.groupUnits(c.pairUnits()) {
		var o, n []string
		for _, u := range s.old {
			o = append(o, unitText(a, u))
		}
		for _, u := range s.new {
			n = append(n, unitText(b, u))
		}
		out = append(out, strings.Join(o, " + ")+" = "+strings.Join(n, " + "))
	}
	return out
}

func TestLonelyBlocks(t *testing.T) {
	tests := []struct {
		name     string
		old, new []string
		want     []string
	}{
		{"half of the larger in any order", []string{"a b c d", "k k k"}, []string{"k k k", "d c b z"},
			[]string{"a b c d = d c b z"}},
		{"less than half of the larger", []string{"a b c d e", "k k k"}, []string{"k k k", "d c z y x"},
			[]string{"a b c d e = ", " = d c z y x"}},
		{"counted with repeats", []string{"a a a q", "k k k"}, []string{"k k k", "q x a y a z"},
			[]string{"a a a q = q x a y a z"}},
		// Each of a, b, c is in both old blocks, so none of them ties the new one to either.
		{"no token of their own", []string{"a b c d1 d2 d3", "c b a e1 e2 e3", "k k k"}, []string{"k k k", "x b y c z a"},
			[]string{"a b c d1 d2 d3 = ", "c b a e1 e2 e3 = ", " = x b y c z a"}},
		// p is only in the first and the new block, q only in the second and the new one.
		{"the one with most in common", []string{"p r x1 x2", "s t q y1", "k k k"}, []string{"k k k", "q t s r p z"},
			[]string{"p r x1 x2 = ", "s t q y1 = q t s r p z"}},
		{"of equals the first", []string{"p r x1", "s t x2", "k k k"}, []string{"k k k", "t s r p"},
			[]string{"p r x1 + s t x2 = t s r p"}},
		{"lines of a list", []string{"cook", "p e", "d a", "go developer fintech"}, []string{"senior go developer", "cook", "p e", "d a"},
			[]string{" = senior go developer", "go developer fintech = "}},
		{"lines of a list, almost the same", []string{"cook", "p e", "d a", "go developer 10"}, []string{"go developer 11", "cook", "p e", "d a"},
			[]string{"go developer 10 = go developer 11"}},
		{"too few for a list", []string{"cook", "p e", "go developer fintech"}, []string{"senior go developer", "cook", "p e"},
			[]string{"go developer fintech = senior go developer"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := groupsWithin(tt.old, tt.new, defaultLimits); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestOverTheGroupingCap: blocks that are too many to diff are compared by the tokens
// they share.
func TestOverTheGroupingCap(t *testing.T) {
	var old, new, want []string
	for i := range 40 {
		o := fmt.Sprintf("page %d says a%d b%d c%d today", i, i, i, i)
		n := fmt.Sprintf("page %d says b%d c%d a%d now", 100+i, i, i, i)
		old, new, want = append(old, o), append(new, n), append(want, o+" = "+n)
	}
	tight := limits{units: 64 << 20, grouping: 3000, group: 16 << 20, allGroups: 64 << 20}
	if got := groupsWithin(old, new, tight); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// With no room at all nothing is compared, and nothing fails.
	if got := groupsWithin(old, new, limits{}); len(got) != 80 {
		t.Errorf("%d groups, want 80", len(got))
	}
}

// TestOverTheRegionCap: what is too much to diff is replaced as a whole, between what both
// ends have in common.
func TestOverTheRegionCap(t *testing.T) {
	a, b := analyze("one two a b c d three"), analyze("one two d c b a three")
	groups, _ := diffWithin(a, b, withGroupingLimit(limits{units: 1 << 20, grouping: 1 << 20, group: 3, allGroups: 1 << 20}))
	want := []string{"-a b c d +d c b a"}
	if got := formatGroups(groups); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
