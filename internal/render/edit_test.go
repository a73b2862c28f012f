package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// editNotification is a notification for a subscription without keywords.
func editNotification(diffs ...pipeline.Diff) pipeline.Notification {
	return pipeline.Notification{Status: pipeline.StatusOK, URL: "https://example.com/", ID: "N", Title: "Shop", Diffs: diffs}
}

func removedDiff(edit int, text, snippet string) pipeline.Diff {
	return pipeline.Diff{Event: pipeline.Removed, Text: text, Snippet: snippet, Edit: edit}
}

func addedDiff(edit int, text, snippet string) pipeline.Diff {
	return pipeline.Diff{Event: pipeline.Added, Text: text, Snippet: snippet, Edit: edit}
}

func TestEdits(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 60))
	in := func(item, title string, d pipeline.Diff) pipeline.Diff {
		d.Item, d.Title = item, title
		return d
	}
	at := func(offset int, d pipeline.Diff) pipeline.Diff {
		d.Offset = offset
		return d
	}
	inSnippet := func(at int, d pipeline.Diff) pipeline.Diff {
		d.SnippetAt = at
		return d
	}
	for _, tt := range []struct {
		name  string
		diffs []pipeline.Diff
		want  string // without the title and the URL
	}{
		{"in items", []pipeline.Diff{
			in("changed", "Lamp", removedDiff(1, "4", "Lamp · 4 left")), in("changed", "Lamp", addedDiff(1, "7", "Lamp · 7 left")),
			in("changed", "Lantern", addedDiff(2, "new", "... new ..."))},
			"Lamp · 4 → 7; added: Lantern · new|~ Lamp · [-4-] {+7+} left|+ Lantern · ... {+new+} ..."},
		{"two cells of a row", []pipeline.Diff{
			in("changed", "Lamp", at(5, removedDiff(1, "4", "Lamp · 4 · yes"))), in("changed", "Lamp", at(5, addedDiff(1, "7", "Lamp · 7 · no"))),
			in("changed", "Lamp", at(7, removedDiff(2, "yes", "Lamp · 4 · yes"))), in("changed", "Lamp", at(7, addedDiff(2, "no", "Lamp · 7 · no")))},
			"Lamp · 4 → 7; Lamp · yes → no|~ Lamp · [-4-] {+7+} · [-yes-] {+no+}"},
		{"rows with the same words", []pipeline.Diff{
			in("changed", "Lamp", at(5, removedDiff(1, "4", "Lamp · 4 · 7"))), in("changed", "Lamp", at(5, addedDiff(1, "7", "Lamp · 7 · 7"))),
			in("changed", "Lamp", at(15, removedDiff(2, "5", "Lamp · 5 · 7"))), in("changed", "Lamp", at(15, addedDiff(2, "7", "Lamp · 7 · 7")))},
			"Lamp · 4 → 7; Lamp · 5 → 7|~ Lamp · [-4-] {+7+} · 7|~ Lamp · [-5-] {+7+} · 7"},
		{"the words of the title", []pipeline.Diff{in("changed", "Lamp 7", removedDiff(1, "4", "Lamp 7 · 4 left")), in("changed", "Lamp 7", inSnippet(10, addedDiff(1, "7", "Lamp 7 · 7 left")))},
			"4 → 7|~ Lamp 7 · [-4-] {+7+} left"},
		{"an item of one block", []pipeline.Diff{in("changed", "Lamp 7 left", removedDiff(1, "4", "Lamp 4 left")), in("changed", "Lamp 7 left", addedDiff(1, "7", "Lamp 7 left"))},
			"4 → 7|~ Lamp [-4-] {+7+} left"},
		{"a new item", []pipeline.Diff{in("new", "Lamp", addedDiff(1, "Lamp", "Lamp")), in("new", "Lamp", addedDiff(1, "7", "7 left")), in("gone", "Torch", removedDiff(2, "Torch", "Torch"))},
			"new: Lamp; gone: Torch|+ new: {+Lamp · 7+}|- gone: [-Torch-]"},
		{"a new item with its title behind a number", []pipeline.Diff{in("new", "Lamp", addedDiff(1, "3.", "3.")), in("new", "Lamp", addedDiff(1, "Lamp", "Lamp")), in("new", "Lamp", addedDiff(1, "7", "7"))},
			"new: Lamp|+ new: {+3. · Lamp · 7+}"},
		{"a title with marks at its ends", []pipeline.Diff{in("new", "Is the lamp (new)?", addedDiff(1, "Is the lamp (new", "Is the lamp (new)?")), in("new", "Is the lamp (new)?", addedDiff(1, "7", "7 left"))},
			"new: Is the lamp (new)?|+ new: {+Is the lamp (new)? · 7+}"},
		{"a character that stands further in front as well", []pipeline.Diff{inSnippet(16, removedDiff(1, "01", "Updated 2026-01-01")), inSnippet(16, addedDiff(1, "02", "Updated 2026-02-02"))},
			"01 → 02|~ Updated 2026-02-[-01-] {+02+}"},
		{"a new item of JSON", []pipeline.Diff{in("new", "Lamp", addedDiff(1, "name: Lamp", "name: Lamp")), in("new", "Lamp", addedDiff(1, "price: 7", "price: 7"))},
			"new: Lamp|+ new: {+name: Lamp · price: 7+}"},
		{"two changes beside one keyword", []pipeline.Diff{{Event: pipeline.Added, Keyword: "lamp", Text: "5", Snippet: "Lamp · 5 left · €8", Offset: 5, Item: "changed", Title: "Lamp"},
			{Event: pipeline.Added, Keyword: "lamp", Text: "8", Snippet: "Lamp · 5 left · €8", Offset: 17, Item: "changed", Title: "Lamp"}},
			"added: lamp|+ lamp: Lamp · 5 left · €8"},
		{"two new items of one title", []pipeline.Diff{in("new", "Lamp", addedDiff(1, "Lamp", "Lamp")), in("new", "Lamp", addedDiff(2, "Lamp", "Lamp"))},
			"new: Lamp; new: Lamp|+ new: {+Lamp+} (2 times)"},
		{"a large edit behind a small one", []pipeline.Diff{removedDiff(1, "1", "1 owl"), addedDiff(1, "2", "2 owls"), addedDiff(2, "A second owl of the house came", "A second owl of the house came")},
			"added: A second owl of the house came; 1 → 2|~ [-1-] {+2+} owls|+ {+A second owl of the house came+}"},
		{"a keyword in a new item", []pipeline.Diff{{Event: pipeline.Added, Keyword: "left", Text: "7", Snippet: "7 left", Item: "new", Title: "Lamp\n 3"}},
			"added: left|+ left: Lamp 3 · 7 left"},
		{"replaced", []pipeline.Diff{removedDiff(1, "10", "Price: 10 EUR"), addedDiff(1, "12", "Price: 12 EUR")},
			"10 → 12|~ Price: [-10-] {+12+} EUR"},
		{"words in common", []pipeline.Diff{removedDiff(1, "x b y", "a x b y c"), addedDiff(1, "b z", "a b z c")},
			"x b y → b z|~ a [-x-] b [-y-] {+z+} c"},
		{"many words in common", []pipeline.Diff{removedDiff(1, "1 a 2 b 3 c 4", "1 a 2 b 3 c 4"), addedDiff(1, "5 a 6 b 7 c 8", "5 a 6 b 7 c 8")},
			"1 a 2 b 3 c 4 → 5 a 6 b 7 c 8|~ [-1 a 2 b 3 c 4-] {+5 a 6 b 7 c 8+}"},
		{"added and removed", []pipeline.Diff{addedDiff(1, "new", "a new thing"), removedDiff(2, "gone", "... is gone ...")},
			"added: new; removed: gone|+ a {+new+} thing|- ... is [-gone-] ..."},
		{"another edit", []pipeline.Diff{removedDiff(1, "10", "10"), addedDiff(2, "12", "12")},
			"removed: 10; added: 12|- [-10-]|+ {+12+}"},
		{"too long for one line", []pipeline.Diff{removedDiff(1, "old "+long, "old "+long), addedDiff(1, "new", "new")},
			"old word word word word word word word word word word word ... → new|- [-old " + long[:len("word ")*41-1] + "-] ...|+ {+new+}"},
		{"many edits", []pipeline.Diff{addedDiff(1, "a", "a"), addedDiff(2, "b", "b"), addedDiff(3, "c", "c"), addedDiff(4, "d", "d")},
			"4 edits: added: a; added: b; added: c|+ {+a+}|+ {+b+}|+ {+c+}|+ {+d+}"},
		{"in a digest with keywords", []pipeline.Diff{{Event: pipeline.Added, Keyword: "zeus", Text: "Zeus", Snippet: "Zeus here"}, addedDiff(1, "a", "a")},
			"added: zeus; added: a|+ zeus: Zeus here|+ {+a+}"},
		{"a keyword that goes with an edit", []pipeline.Diff{
			{Event: pipeline.Removed, Keyword: "in stock", Text: "in stock", Counterpart: "out of stock", Snippet: "Zeus is in stock today", SnippetAt: 8}},
			"removed: in stock|- in stock: Zeus is [-in-] {+out of+} stock today"},
		{"both sides of an edit with keywords", []pipeline.Diff{
			{Event: pipeline.Removed, Keyword: "stock", Text: "in stock", Counterpart: "out of stock", Snippet: "Zeus is in stock", SnippetAt: 8},
			{Event: pipeline.Added, Keyword: "stock", Text: "out of stock", Counterpart: "in stock", Snippet: "Zeus is out of stock", SnippetAt: 8}},
			"added: stock; removed: stock|~ stock: Zeus is [-in-] {+out of+} stock"},
		{"a keyword beside an edit", []pipeline.Diff{{Event: pipeline.Added, Keyword: "lamp", Text: "5", Counterpart: "4", Snippet: "Lamp · 5 left", SnippetAt: 8, Item: "changed", Title: "Lamp"}},
			"added: lamp|+ lamp: Lamp · [-4-] {+5+} left"},
		{"a keyword in an edit that is too long for one line", []pipeline.Diff{{Event: pipeline.Removed, Keyword: "old", Text: "old", Counterpart: "new " + long, Snippet: "the old word"}},
			"removed: old|- old: the old word"},
	} {
		got := strings.Split(MessageOf(editNotification(tt.diffs...), Budget{}).Plain(), "\n")
		got = append(got[:1], got[4:]...)
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestEditsInMarkdown(t *testing.T) {
	m := MessageOf(editNotification(removedDiff(1, "10", "Price: 10 EUR"), addedDiff(1, "12", "Price: 12 EUR"), addedDiff(2, "new", "new")), Budget{})
	want := "\\~ changed\n> Price: ~~10~~ **12** EUR\n\n\\+ added\n> **new**"
	if got := AsMarkdown(m, func(s string) string { return s }); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEditedSignsInMarkdown: between a word and a sign a mark has an effect only if something that is neither stands
// between the mark and the sign.
func TestEditedSignsInMarkdown(t *testing.T) {
	m := MessageOf(editNotification(removedDiff(1, "$", "for $10"), addedDiff(1, "€", "for €10")), Budget{})
	want := "\\~ changed\n> for ~~\u200b$\u200b~~ **\u200b€\u200b**10"
	if got := AsMarkdown(m, func(s string) string { return s }); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestEditsFitTheirBudget: whatever an edit contains, a line is no longer than its budget.
func TestEditsFitTheirBudget(t *testing.T) {
	for _, n := range []int{1, 10, 60, 100, 230, 1000} {
		for _, word := range []string{"ab ", "long", "日本"} {
			a, b := strings.Repeat(word, n)+"x", strings.Repeat(word, n)+"y"
			around := strings.Repeat("around ", n)
			m := MessageOf(editNotification(removedDiff(1, a, around+a+around), addedDiff(1, b, around+b+around)), Budget{Line: 200})
			for _, l := range m.Lines {
				if size := Runes(l.Text()); size > 200+len("[--]{++}")*2 || len(Looks(l)) > maxLooks {
					t.Errorf("%d times %q: a line of %d characters in %d parts: %s", n, word, size, len(Looks(l)), l.Text())
				}
			}
		}
	}
}

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
