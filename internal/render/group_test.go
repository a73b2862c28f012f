package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// groupOfPages is a group of n pages with a title, each of which has one difference.
func groupOfPages(n int, title string) pipeline.Notification {
	g := pipeline.Notification{Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest}
	for i := range n {
		g.Items = append(g.Items, pipeline.Item{URL: fmt.Sprintf("https://shop.example.com/item/%d", i), Title: title, Diffs: 1})
		g.Diffs = append(g.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: "stock", Text: "stock", Snippet: fmt.Sprintf("Number %d is out of stock.", i)})
	}
	return g
}

// TestGroup: each page is named, as long as there is room for its name.
func TestGroup(t *testing.T) {
	m := MessageOf(groupOfPages(3, "Zeus"), Budget{Total: 9000})
	want := `3 pages changed on shop.example.com; added: stock
Zeus (https://shop.example.com/item/0): added: stock: Number 0 is out of stock.
Zeus (https://shop.example.com/item/1): added: stock: Number 1 is out of stock.
Zeus (https://shop.example.com/item/2): added: stock: Number 2 is out of stock.`
	if got := m.Plain(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, total := range []int{0, 9000, 3000, 1500, 1100} {
		got := MessageOf(groupOfPages(30, strings.Repeat("A long title ", 10)), Budget{Total: total}).Plain()
		if total > 0 && len([]rune(got)) > total+maxFoot+2*30 {
			t.Errorf("%d characters, of at most %d", len(got), total)
		}
		if strings.Contains(got, "more page") {
			t.Errorf("within %d pages are left out:\n%s", total, got)
		}
		for i := range 30 {
			if total >= 1500 && !strings.Contains(got, fmt.Sprintf("shop.example.com/item/%d", i)) {
				t.Errorf("within %d, page %d is not named:\n%s", total, i, got)
			}
		}
	}
	m = MessageOf(groupOfPages(1000, "Zeus"), Budget{Total: 3000})
	if last := m.Pages[len(m.Pages)-1].String(); !strings.HasPrefix(last, "... and ") || len([]rune(m.Plain())) > 3200 {
		t.Errorf("%d characters, ending in %s", len(m.Plain()), last)
	}
}

// TestHostileGroup: what pages say stays in one line and has no control characters.
func TestHostileGroup(t *testing.T) {
	n := groupOfPages(2, "a\x1b[31m\nb\u202e")
	n.Items[1].URL = "javascript:alert(1)"
	n.Severity = pipeline.SeverityCritical
	m := MessageOf(n, Budget{Total: 900})
	if !strings.HasPrefix(m.Headline, "CRITICAL: 2 pages changed") {
		t.Errorf("the headline is %s", m.Headline)
	}
	if got := m.Plain(); strings.ContainsAny(got, "\x1b\u202e") || strings.Count(got, "\n") != 2 {
		t.Errorf("got %q", got)
	}
	if m.Pages[1].URL != "" {
		t.Errorf("%s became a link", m.Pages[1].URL)
	}
}
