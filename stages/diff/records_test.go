package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/text"
)

// TestRecords: where no element holds them, blocks that come again in one order are items.
func TestRecords(t *testing.T) {
	entry := func(i int) []string {
		return []string{fmt.Sprintf("subject%d", i), fmt.Sprintf("%d points by author%d", i, i), "read more"}
	}
	list := func(from, n int) (blocks []string) {
		for i := from; i < from+n; i++ {
			blocks = append(blocks, entry(i)...)
		}
		return blocks
	}
	long := strings.Repeat("word ", 25)
	doc := func(parts ...[]string) *text.Doc { return text.Analyze(strings.Join(slices.Concat(parts...), "\n")) }
	top, end := []string{"Entries of today"}, []string{"All rights reserved", "Imprint"}
	for _, tt := range []struct {
		name     string
		old, new *text.Doc
		want     []string
	}{
		{"one more on top", doc(top, list(2, 4), end), doc(top, list(1, 5), end), []string{"new subject1"}},
		{"all are new", doc(top, list(1, 4), end), doc(top, list(11, 3), end),
			[]string{"gone subject1", "gone subject2", "gone subject3", "gone subject4", "new subject11", "new subject12", "new subject13"}},
		{"all but one left", doc(top, list(1, 5), end), doc(top, list(5, 1), end), []string{"gone subject1", "gone subject2", "gone subject3", "gone subject4"}},
		{"an edit", doc(top, list(1, 4), end), doc(top, list(1, 3), []string{"subject4", "90 points by author4", "read more"}, end),
			[]string{"changed subject4"}},
		{"an edit of what is around", doc(top, list(1, 4), end), doc(top, list(1, 4), end[:1]), []string{" "}},
		{"two of them are too few", doc(top, list(1, 2), end), doc(top, list(2, 2), end), []string{" ", " ", " ", " ", " "}},
		{"a word that comes again by chance", doc(top, []string{"one docs", "two", "three docs", "four", "five docs", "six"}, end),
			doc(top, []string{"one docs", "two", "other docs", "four", "five docs", "six"}, end), []string{" "}},
		{"headings and prose", doc([]string{"1. First", long + "a b c", long, "2. Second", long + "d", long, "3. Third", long + "e f", long}),
			doc([]string{"1. First", long + "a x c", long, "2. Second", long + "d", long, "3. Third", long + "e f", long}), []string{" "}},
	} {
		got := []string{}
		for _, g := range Diff(tt.old, tt.new) {
			got = append(got, g.Item+" "+g.Title)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRecordsOfAnotherPeriod: words that come again at every third block say nothing of records of two blocks.
func TestRecordsOfAnotherPeriod(t *testing.T) {
	page := func(fourth string) *text.Doc {
		return text.Analyze(strings.Join([]string{
			"улицы с. книга. домов большая большими и большая и улицы цены не Дома домов", "12. улицы цены дом ₽ Цены",
			"Дома ★. моя. поёт большой Книгу", fourth, "дом поёт Дома цены Не. на мой Книгу новый книгами мой",
			"★ книга Книгу и Книгу книги. улица большой 12% 12 ₽ большая на новый",
			"Не большими Цены дом ≥ края. улицы цена зелёный. петь книга не",
		}, "\n") + "\n")
	}
	old, new := page("₽ зелёный 365 петь не. лес"), page("₽ ★ 365 петь не. лес")
	for _, g := range Diff(old, new) {
		if g.Item != "" {
			t.Errorf("%s: a block is taken for an item", g.Title)
		}
	}
}
