package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/match"
	"github.com/vokter/vokter/test/oracle"
)

var texts = flag.Int("oracle.texts", 4000, "how many random texts TestOracle compares with brute force")

// randomLanguage is a language to write random texts in.
type randomLanguage struct {
	lang    string
	words   []string // forms of the same words are among them, stop words and capitals
	wordGap string   // between words
	marks   string   // between sentences
}

var randomLanguages = []randomLanguage{
	{"fr", strings.Fields(`cheval chevaux Cheval maison maisons Maisons école écoles ecole été le la Les de des et
		grand grande grands nouvelle nouvelles prix Prix rue rues chante chantent chanter 12 365 vert verte forêt forêts ✔ ✘ € -5 5 >= <= %`), " ", ". "},
	{"ru", strings.Fields(`дом дома домов Дома книга книги книгами Книгу и на не Не с большой большая большими новый новые
		улица улицы цена цены Цены поёт пели петь 12 365 зелёный лес леса мой моя край края ₽ ★ 12% ≥`), " ", ". "},
	{"ar", strings.Fields(`كتاب الكتاب كتب مكتبة المكتبات مكتبات مدينة المدينة في من على جديد الجديد جديدة كبير الكبيرة
		شارع الشارع سعر الأسعار أخضر خضراء 12 365 غابة الغابات ✔ €`), " ", "، "},
	{"zh", strings.Split("百眼巨人看守母牛日夜不眠新书店很大12价格上涨森林￥★★", ""), "", "，"},
}

// TestOracle compares what the stages diff and match find in random texts with the brute force of
// the oracle, in four scripts, with and without stems, stop words, case and marks.
func TestOracle(t *testing.T) {
	languages := text.NewLanguages(stemmers.All()...)
	for _, s := range randomLanguages {
		t.Run(s.lang, func(t *testing.T) {
			t.Parallel()
			known := s.oracleLanguage(languages)
			told := 0
			for seed := range max(*texts/len(randomLanguages)/2, 1) {
				r := rand.New(rand.NewPCG(uint64(seed), 13))
				n, err := s.compare(r, languages, known)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				told += n
			}
			t.Logf("%d reports", told)
			if told == 0 {
				t.Error("nothing was ever told: this proves nothing")
			}
		})
	}
}

// oracleLanguage is what the oracle knows of the language. Its stems and stop words are the product's:
// they are not what is compared.
func (s randomLanguage) oracleLanguage(languages *text.Languages) *oracle.Language {
	n := languages.Normalizer(s.lang)
	l := &oracle.Language{Stop: map[string]bool{}, Stem: func(w string) string { return n.Term(w, text.FormStem) }}
	for _, w := range s.words {
		if n.IsStop(w) {
			l.Stop[strings.ToLower(w)] = true
		}
	}
	return l
}

// compare makes two texts and a subscription, and returns how many reports there were.
func (s randomLanguage) compare(r *rand.Rand, languages *text.Languages, known *oracle.Language) (int, error) {
	old := make([]string, 1+r.IntN(8))
	for i := range old {
		old[i] = s.sentence(r, 1+r.IntN(14))
	}
	now := s.edit(r, old)
	sub := pipeline.Subscription{
		MatchCase: r.IntN(2) == 0, IgnoreDiacritics: r.IntN(3) == 0, Stem: r.IntN(2) == 0, FilterStopwords: r.IntN(3) == 0, Moved: r.IntN(6) == 0,
	}
	for range 1 + r.IntN(4) {
		sub.Keywords = append(sub.Keywords, s.sentence(r, 1+r.IntN(3)))
	}
	switch r.IntN(4) {
	case 0:
		sub.MinChange.Tokens = r.IntN(8)
	case 1:
		sub.MinChange.Share = r.IntN(4000)
	}
	sub.Near = []string{"", "", pipeline.NearBlock, pipeline.NearRow}[r.IntN(4)]
	sub = sub.WithDefaults()
	change, _ := diff.ChangeOf(flow.Snapshot{Old: joinBlocks(old), New: joinBlocks(now), N: 2, Previous: 1, Language: s.lang})
	var reports []oracle.Report
	for _, m := range match.NewMatcher([]match.Entry{{ID: "s", Subscription: sub}}, languages).Match(&change) {
		for _, d := range m.Diffs {
			reports = append(reports, oracle.Report{Event: string(d.Event), Keyword: d.Keyword, Text: d.Text, Snippet: d.Snippet, Item: d.Item, Title: d.Title, Offset: d.Offset})
		}
	}
	expected := oracle.Compare(page(old), page(now)).Expect(oracle.Subscription{
		Keywords: sub.Keywords, Added: true, Removed: true, MatchCase: sub.MatchCase, IgnoreDiacritics: sub.IgnoreDiacritics,
		Stem: sub.Stem, FilterStopwords: sub.FilterStopwords, Terms: sub.Match == pipeline.MatchTerms, Moved: sub.Moved,
		NearBlock: sub.Near == pipeline.NearBlock, NearRow: sub.Near == pipeline.NearRow,
		Min: oracle.MinChange{Tokens: sub.MinChange.Tokens, Share: sub.MinChange.Share},
	}, known)
	switch {
	case len(reports) == 0 && expected.Must():
		return 0, fmt.Errorf("missed: %+v\nold %q\nnew %q\nwant %v", sub, old, now, expected)
	case len(reports) > 0 && !expected.May():
		return 0, fmt.Errorf("invented: %+v\nold %q\nnew %q\ngot %+v", sub, old, now, reports)
	case len(reports) > 0:
		if err := expected.Check(reports, 0, false); err != nil {
			return 0, fmt.Errorf("%w: %+v\nold %q\nnew %q\ngot %+v", err, sub, old, now, reports)
		}
	}
	return len(reports), nil
}

// sentence returns n words, now and then with a mark behind one.
func (s randomLanguage) sentence(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			if r.IntN(8) == 0 {
				b.WriteString(s.marks)
			} else {
				b.WriteString(s.wordGap)
			}
		}
		b.WriteString(s.words[r.IntN(len(s.words))])
	}
	return b.String()
}

// edit returns another version of blocks: words and blocks come, go and move.
func (s randomLanguage) edit(r *rand.Rand, blocks []string) []string {
	now := append([]string(nil), blocks...)
	for range 1 + r.IntN(4) {
		at := 0
		if len(now) > 0 {
			at = r.IntN(len(now))
		}
		switch r.IntN(7) {
		case 0:
			now = append(now[:at:at], append([]string{s.sentence(r, 1+r.IntN(14))}, now[at:]...)...)
		case 1:
			if len(now) > 1 {
				now = append(now[:at:at], now[at+1:]...)
			}
		case 2:
			to := r.IntN(len(now))
			now[at], now[to] = now[to], now[at]
		case 3:
			if at+1 < len(now) {
				now = append(append(now[:at:at], now[at]+s.wordGap+now[at+1]), now[at+2:]...)
			}
		default:
			now[at] = s.changeWord(r, now[at])
		}
	}
	return now
}

// changeWord returns block with one word added, removed or replaced.
func (s randomLanguage) changeWord(r *rand.Rand, block string) string {
	words := strings.Split(block, s.wordGap)
	at := r.IntN(len(words))
	switch r.IntN(3) {
	case 0:
		words[at] = s.sentence(r, 1)
	case 1:
		words[at] += s.wordGap + s.sentence(r, 1)
	default:
		if len(words) > 1 {
			words = append(words[:at:at], words[at+1:]...)
		}
	}
	return strings.Join(words, s.wordGap)
}

// joinBlocks returns blocks as a reader extracts them.
func joinBlocks(blocks []string) string { return strings.Join(blocks, "\n") + "\n" }

func page(blocks []string) oracle.Page {
	var p oracle.Page
	at := 0
	for _, b := range blocks {
		p = append(p, oracle.Block{Text: b, Offset: at})
		at += len(b) + 1
	}
	return p
}
