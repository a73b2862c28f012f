package match

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// bruteForce is what behaviour says, by brute force: no index, no windows, whole sides.
type bruteForce struct {
	s    pipeline.Subscription
	norm *text.Normalizer
}

// kept says which tokens of a text a keyword is compared with.
type kept struct{ stopwords, signs bool }

// terms returns the terms of tokens and which token each is.
func (n bruteForce) terms(tokens []string, k kept) (terms []string, at []int) {
	for i, w := range tokens {
		if (k.stopwords || !n.s.FilterStopwords || !n.norm.IsStop(w)) && (k.signs || !isSign(w)) {
			terms = append(terms, n.norm.Term(w, text.FormOf(n.s)))
			at = append(at, i)
		}
	}
	return terms, at
}

func tokenTexts(s string) (out []string) {
	for _, t := range text.Tokens(s) {
		out = append(out, s[t.Start:t.End])
	}
	return out
}

// isSign reports whether a token has neither a letter nor a digit.
func isSign(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// keywordTerms returns the terms of k, and what counts of the text: stop words where the keyword has nothing
// else, and signs where it has one.
func (n bruteForce) keywordTerms(k string) (terms []string, counts kept) {
	counts.signs = slices.ContainsFunc(tokenTexts(k), isSign)
	if terms, _ = n.terms(tokenTexts(k), kept{signs: true}); len(terms) > 0 {
		return terms, counts
	}
	counts.stopwords = true
	terms, _ = n.terms(tokenTexts(k), kept{true, true})
	return terms, counts
}

// shownRanges returns which differences block b of s has: ranges of tokens.
func shownRanges(s *groupSide, b int) (out [][2]int) {
	for i, c := range s.changed[b] {
		if !c {
			continue
		}
		if k := len(out) - 1; k >= 0 && i-out[k][1] <= 3 {
			out[k][1] = i + 1
		} else {
			out = append(out, [2]int{i, i + 1})
		}
	}
	return out
}

// expectedReport is one report, as naive makes it.
type expectedReport struct {
	side, block, from, to int
	text                  string
}

// difference is one of shownRanges in a block.
type difference struct{ block, from, to int }

// phraseReports returns the reports of a phrase on side i of a group, and the differences that they are of.
func (n bruteForce) phraseReports(k string, sides [2]*groupSide, i int, moved bool) (out []expectedReport, of map[difference]bool) {
	of = map[difference]bool{}
	terms, all := n.keywordTerms(k)
	var counts [2]int
	for j, s := range sides {
		for b := range s.tokens {
			ts, _ := n.terms(s.tokens[b], all)
			for f := 0; f+len(terms) <= len(ts); f++ {
				if slices.Equal(ts[f:f+len(terms)], terms) {
					counts[j]++
				}
			}
		}
	}
	if len(terms) == 0 || !moved && counts[i] <= counts[1-i] {
		return nil, of
	}
	s := sides[i]
	for b := range s.tokens {
		places := map[[2]int][2]int{} // difference or place between tokens → tokens to show
		ts, at := n.terms(s.tokens[b], all)
		for f := 0; f+len(terms) <= len(ts); f++ {
			if !slices.Equal(ts[f:f+len(terms)], terms) {
				continue
			}
			first, last := at[f], at[f+len(terms)-1]
			shares := false
			for _, d := range shownRanges(s, b) {
				for t := max(first, d[0]); t <= min(last, d[1]-1); t++ {
					if s.changed[b][t] {
						shares = true
						r, ok := places[d]
						if !ok {
							r = d
						}
						places[d] = [2]int{min(r[0], first), max(r[1], last+1)}
					}
				}
			}
			for t := first + 1; t <= last && !shares; t++ {
				if s.gaps[b][t] {
					r, ok := places[[2]int{t, t}]
					if !ok {
						r = [2]int{first, last + 1}
					}
					places[[2]int{t, t}] = [2]int{min(r[0], first), max(r[1], last+1)}
					break
				}
			}
		}
		for d, r := range places {
			of[difference{b, d[0], d[1]}] = true
			out = append(out, expectedReport{i, b, r[0], r[1], s.textOf(b, r)})
		}
	}
	return out, of
}

// nearReports returns the reports of the differences in those blocks of side i, or if it is an item in all,
// that contain k. It leaves out those that are reported anyway. whole says that only this version has the item: then
// it must not be long.
func (n bruteForce) nearReports(k string, s *groupSide, i int, anyway map[difference]bool, whole bool) (out []expectedReport) {
	terms, all := n.keywordTerms(k)
	contains := func(blocks ...[]string) bool {
		var words []string
		phrase := false
		for _, tokens := range blocks {
			ts, _ := n.terms(tokens, all)
			words = append(words, ts...)
			for f := 0; f+len(terms) <= len(ts); f++ {
				phrase = phrase || slices.Equal(ts[f:f+len(terms)], terms)
			}
		}
		if n.s.Match != pipeline.MatchTerms {
			return phrase
		}
		return !slices.ContainsFunc(terms, func(t string) bool { return !slices.Contains(words, t) })
	}
	if len(terms) == 0 || whole && len(anyway) > 0 {
		return nil
	}
	size := 0
	for _, ts := range s.tokens {
		size += len(ts)
	}
	isRow := s.item && (size <= text.MaxItem || !whole)
	for b := range s.tokens {
		if !contains(s.tokens[b]) && (n.s.Near != pipeline.NearRow || !isRow || !contains(s.tokens...)) {
			continue
		}
		for _, d := range shownRanges(s, b) {
			if !anyway[difference{b, d[0], d[1]}] {
				out = append(out, expectedReport{i, b, d[0], d[1], s.textOf(b, d)})
			}
		}
	}
	return out
}

func (n bruteForce) termReports(k string, sides [2]*groupSide, i int, moved bool) (out []expectedReport, of map[difference]bool) {
	of = map[difference]bool{}
	terms, all := n.keywordTerms(k)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if len(terms) == 0 {
		return nil, of
	}
	var counts [2]map[string]int
	for j, s := range sides {
		counts[j] = map[string]int{}
		for b := range s.tokens {
			ts, _ := n.terms(s.tokens[b], all)
			for _, t := range ts {
				counts[j][t]++
			}
		}
	}
	s := sides[i]
	for b := range s.tokens {
		ts, at := n.terms(s.tokens[b], all)
		for _, d := range shownRanges(s, b) {
			has, news := map[string]bool{}, false
			for f, t := range ts {
				if at[f] >= d[0] && at[f] < d[1] && slices.Contains(terms, t) {
					has[t] = true
					news = news || s.changed[b][at[f]] && (moved || counts[i][t] > counts[1-i][t])
				}
			}
			if len(has) == len(terms) && news {
				of[difference{b, d[0], d[1]}] = true
				out = append(out, expectedReport{i, b, d[0], d[1], s.textOf(b, d)})
			}
		}
	}
	return out, of
}

func (s *groupSide) textOf(b int, r [2]int) string {
	ts := text.Tokens(s.blocks[b])
	return s.blocks[b][ts[r[0]].Start:ts[r[1]-1].End]
}

// allDiffs returns all that is said, without what repeats, as event, keyword and text.
func (n bruteForce) allDiffs(c *flow.Change, groups [][2]*groupSide) []string {
	var out []string
	for g, sides := range groups {
		if c.Groups[g].Moved && !n.s.Moved || n.s.NewItems && (!sides[newSide].item || len(sides[oldSide].blocks) > 0) {
			continue
		}
		for i := range sides {
			if !n.s.Wants(eventOfSide[i]) {
				continue
			}
			var reports []expectedReport
			words := map[expectedReport]map[string]bool{}
			for _, k := range n.s.Keywords {
				rs, of := n.phraseReports(k, sides, i, c.Groups[g].Moved)
				if n.s.Match == pipeline.MatchTerms {
					rs, of = n.termReports(k, sides, i, c.Groups[g].Moved)
				}
				if n.s.Near != "" && !c.Groups[g].Moved {
					rs = append(rs, n.nearReports(k, sides[i], i, of, len(sides[1-i].blocks) == 0)...)
				}
				for _, r := range rs {
					if words[r] == nil {
						words[r] = map[string]bool{}
						reports = append(reports, r)
					}
					words[r][k] = true
				}
			}
			slices.SortFunc(reports, func(a, b expectedReport) int {
				return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
			})
			for _, r := range reports {
				seen := map[string]bool{}
				for _, k := range n.s.Keywords {
					if words[r][k] && !seen[k] {
						seen[k] = true
						out = append(out, fmt.Sprintf("%s %q: %s", eventOfSide[i], k, r.text))
					}
				}
			}
		}
	}
	return out
}

// vocabulary has cases, marks, stems and stop words of each other.
var vocabulary = strings.Fields("god gods God the The of eye eyes éye café cafe Zeus zeus argus ✔ ✔ €5 -5 5 ≥ 🔥")

func randomWords(r *rand.Rand, n int) string {
	var ws []string
	for range n {
		ws = append(ws, vocabulary[r.IntN(len(vocabulary))])
	}
	return strings.Join(ws, []string{" ", ", ", " "}[r.IntN(3)])
}

// randomEdit returns s with a few words taken out, put in or replaced, blocks merged or split.
func randomEdit(r *rand.Rand, s string) string {
	ws := strings.FieldsFunc(s, func(c rune) bool { return c == ' ' })
	for range 1 + r.IntN(4) {
		i := 0
		if len(ws) > 0 {
			i = r.IntN(len(ws))
		}
		switch k := r.IntN(4); {
		case k == 0 && len(ws) > 1:
			ws = slices.Delete(ws, i, i+1)
		case k == 1 && len(ws) > 0:
			ws[i] = randomWords(r, 1)
		case k == 2 && len(ws) > 0 && strings.Contains(ws[i], "|"):
			ws[i] = strings.ReplaceAll(ws[i], "|", " ")
		default:
			ws = slices.Insert(ws, i, randomWords(r, 1+r.IntN(2))+[]string{"", "", "|x"}[r.IntN(3)])
		}
	}
	return strings.Join(ws, " ")
}

func randomGroups(r *rand.Rand) (gs []groupTexts) {
	for range 1 + r.IntN(3) {
		var blocks []string
		for range 1 + r.IntN(3) {
			blocks = append(blocks, randomWords(r, 1+r.IntN(25)))
		}
		old := strings.Join(blocks, "|")
		switch r.IntN(8) {
		case 0:
			gs = append(gs, groupTexts{old: old, item: r.IntN(2) == 0})
		case 1:
			gs = append(gs, groupTexts{new: old, item: r.IntN(2) == 0})
		case 2:
			gs = append(gs, groupTexts{old: old, new: old, moved: true})
		default:
			gs = append(gs, groupTexts{old: old, new: randomEdit(r, old), item: r.IntN(3) == 0})
		}
	}
	return gs
}

func randomSubscription(r *rand.Rand) pipeline.Subscription {
	flip := func() bool { return r.IntN(3) == 0 }
	s := pipeline.Subscription{Stem: flip(), FilterStopwords: flip(), MatchCase: flip(), IgnoreDiacritics: flip(), Moved: flip()}
	for range 1 + r.IntN(4) {
		s.Keywords = append(s.Keywords, randomWords(r, 1+r.IntN(4)))
	}
	s.Match = []string{"", pipeline.MatchPhrase, pipeline.MatchTerms}[r.IntN(3)]
	s.Near = []string{"", "", pipeline.NearBlock, pipeline.NearRow}[r.IntN(4)]
	s.NewItems = r.IntN(5) == 0
	s.Language = []string{"", "", "de", "en"}[r.IntN(4)]
	if r.IntN(4) == 0 {
		s.Events = []pipeline.Event{[]pipeline.Event{pipeline.Added, pipeline.Removed}[r.IntN(2)]}
	}
	return s
}

// TestAgainstBruteForce holds the Matcher, which sees only windows and looks up an index,
// against counting over whole sides, keyword by keyword; and the filter against both.
func TestAgainstBruteForce(t *testing.T) {
	langs := text.NewLanguages()
	rounds := 1200
	if testing.Short() {
		rounds = 300
	}
	said, closed := 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		c, sides := changeOf(12+r.IntN(30), randomGroups(r)...)
		c.Language = []string{"en", "en", ""}[r.IntN(3)]
		if err := checkWindows(c); err != nil {
			t.Fatal(err)
		}
		var entries []Entry
		for i := range 1 + r.IntN(12) {
			entries = append(entries, Entry{fmt.Sprint(i), randomSubscription(r)})
		}
		m := NewMatcher(entries, langs)
		got := map[string][]string{}
		for _, match := range m.Match(c) {
			for _, d := range match.Diffs {
				got[match.ID] = append(got[match.ID], fmt.Sprintf("%s %q: %s", d.Event, d.Keyword, d.Text))
				if at := slices.IndexFunc(c.Groups, func(g flow.Group) bool { return g.Item == d.Item && g.Title == d.Title }); at < 0 {
					t.Fatalf("seed %d: %q is said of the item %q, %q", seed, d.Text, d.Item, d.Title)
				}
			}
		}
		for _, e := range entries {
			s := e.Subscription.WithDefaults()
			lang := c.Language
			if s.Language != "" {
				lang = s.Language
			}
			want := bruteForce{s, langs.Normalizer(lang)}.allDiffs(c, sides)
			said += len(want)
			// Snippets tell some of those apart whose texts are equal.
			if g, w := unique(got[e.ID]), unique(want); !reflect.DeepEqual(g, w) {
				t.Fatalf("seed %d, %+v\n%s\n got %q\nwant %q", seed, s, formatGroups(sides), g, w)
			}
		}
		if !m.index(c.Language).buildFilter("").mayMatch(c, langs) {
			closed++
			if len(got) > 0 {
				t.Fatalf("seed %d: the filter says that nothing is touched, but %d are", seed, len(got))
			}
		}
	}
	if said < rounds || closed < rounds/100 {
		t.Errorf("%d reports and %d closed filters in %d rounds: this proves little", said, closed, rounds)
	}
}

func unique(ss []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range ss {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func formatGroups(groups [][2]*groupSide) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "  %s → %s\n", strings.Join(g[0].blocks, " | "), strings.Join(g[1].blocks, " | "))
	}
	return b.String()
}
