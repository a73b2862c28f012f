package restless

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// learnWordsOf shows the texts to a new table, one at each check, and returns for each check what was muted, as
// "old → new", and the table.
func learnWordsOf(texts []string) (muted []string, t Table) {
	for i := 1; i < len(texts); i++ {
		l := t.Learn(texts[i-1], texts[i], uint64(i), time.Minute)
		t.SaidWords()
		var all []string
		for _, e := range l.Words {
			all = append(all, texts[i-1][e[0]:e[1]]+" → "+texts[i][e[2]:e[3]])
		}
		muted = append(muted, strings.Join(all, "; "))
	}
	return muted, t
}

// rotating returns n texts with an advertisement of three, each made by page.
func rotating(n int, page func(i int, ad string) string) (texts []string) {
	for i := range n {
		texts = append(texts, page(i, []string{"Buy a lantern", "Win a voyage", "Sleep on wool"}[i%3]))
	}
	return texts
}

// TestRotatingWords: what rotates is muted after five changes in a row, whole blocks and words of a block, and what
// is news beside it is not.
func TestRotatingWords(t *testing.T) {
	names := strings.Fields("hera zeus argus")
	texts := rotating(20, func(i int, ad string) string {
		s := "News\n" + ad + "\nThe owl sees\nLast post by " + names[i%3] + " of the house\n"
		switch i {
		case 12:
			s = "News\n" + ad + "\nA block that came\nThe owl sees\nLast post by " + names[i%3] + " of the house\n"
		case 15:
			s = strings.Replace(s, "Last post", "First post", 1)
		case 17:
			s = strings.Replace(s, ad, "The house is sold", 1)
		}
		return s
	})
	muted, table := learnWordsOf(texts)
	for i, m := range muted {
		check := i + 1
		ad, name := strings.Contains(m, "Buy") || strings.Contains(m, "Win") || strings.Contains(m, "Sleep"), strings.Contains(m, "hera") || strings.Contains(m, "zeus")
		if check <= 6 && m != "" {
			t.Errorf("check %d: %q is muted at once", check, m)
		}
		if check == 17 && strings.Contains(m, "sold") {
			t.Errorf("check %d: %q is muted", check, m)
		}
		if (check == 8 || check == 11) && (!ad || !name) {
			t.Errorf("check %d: muted is %q, want both places", check, m)
		}
		for _, news := range []string{"came", "First"} {
			if strings.Contains(m, news) {
				t.Errorf("check %d: %q is muted", check, m)
			}
		}
	}
	var labels []string
	for _, p := range table.Turning(texts[19], 19) {
		labels = append(labels, p.Label)
	}
	if got := fmt.Sprintf("%q", labels); got != `["[Win a voyage]" "Last post by [zeus] of the house"]` {
		t.Errorf("the places are %s", got)
	}
}

// TestWordsThatAreTold: a list that grows, an amount of money and what toggles now and then are no place.
func TestWordsThatAreTold(t *testing.T) {
	list := ""
	for name, page := range map[string]func(i int, ad string) string{
		"list": func(i int, ad string) string {
			list = fmt.Sprintf("Item %c%c of it\n", 'a'+i%26, 'a'+i/26) + list
			return "News\n" + list + "All rights"
		},
		"money":  func(i int, ad string) string { return "News\n" + ad + " for 12.50 EUR\nAll rights" },
		"toggle": func(i int, _ string) string { return []string{"In stock", "Sold out"}[i/5%2] + "\nAll rights" },
	} {
		muted, table := learnWordsOf(rotating(60, page))
		if got := strings.Join(muted, ""); got != "" {
			t.Errorf("%s: muted is %q", name, got)
		}
		if got := table.Turning(rotating(1, page)[0], 59); len(got) > 0 {
			t.Errorf("%s: the places are %+v", name, got)
		}
	}
}

// TestMovedPlace: a place stays what it is where blocks come and go in front of it, and numbers beside it change.
func TestMovedPlace(t *testing.T) {
	muted, _ := learnWordsOf(rotating(20, func(i int, ad string) string {
		return strings.Repeat("A headline\n", 1+i/8) + fmt.Sprintf("Viewed %d times\n%s\nAll rights", 100+i, ad)
	}))
	if n := strings.Count(strings.Join(muted, "|"), "→"); n < 10 {
		t.Errorf("muted is %q", muted)
	}
}
