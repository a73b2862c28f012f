package match

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// diffsOf matches one subscription and returns its diffs as "+keyword: text" and "-keyword: text".
func diffsOf(t *testing.T, c *flow.Change, s pipeline.Subscription) []string {
	t.Helper()
	if err := checkWindows(c); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, m := range NewMatcher([]Entry{{"s", s}}, text.NewLanguages()).Match(c) {
		for _, d := range m.Diffs {
			sign := "+"
			if d.Event == pipeline.Removed {
				sign = "-"
			}
			out = append(out, fmt.Sprintf("%s%s: %s", sign, d.Keyword, d.Text))
			if !strings.Contains(d.Snippet, d.Text) {
				t.Errorf("snippet %q without text %q", d.Snippet, d.Text)
			}
		}
		if m.Omitted > 0 {
			out = append(out, "...")
		}
	}
	return out
}

func keywords(words ...string) pipeline.Subscription { return pipeline.Subscription{Keywords: words} }

// with returns s with what change makes of it.
func with(s pipeline.Subscription, change func(*pipeline.Subscription)) pipeline.Subscription {
	change(&s)
	return s
}

func matchCase(s *pipeline.Subscription)        { s.MatchCase = true }
func ignoreDiacritics(s *pipeline.Subscription) { s.IgnoreDiacritics = true }
func stemWords(s *pipeline.Subscription)        { s.Stem = true }
func filterStopwords(s *pipeline.Subscription)  { s.FilterStopwords = true }
func matchPhrase(s *pipeline.Subscription)      { s.Match = pipeline.MatchPhrase }
func matchTerms(s *pipeline.Subscription)       { s.Match = pipeline.MatchTerms }
func wantMoved(s *pipeline.Subscription)        { s.Moved = true }
func likeOriginal(s *pipeline.Subscription) {
	s.Stem, s.FilterStopwords = true, true
}
func german(s *pipeline.Subscription) { s.Language = "de" }
func onlyAdded(s *pipeline.Subscription) {
	s.Events = []pipeline.Event{pipeline.Added}
}
func onlyRemoved(s *pipeline.Subscription) {
	s.Events = []pipeline.Event{pipeline.Removed}
}

const (
	argusOld = "is the of the 100-eyed giant in Greek mythology."
	argusNew = "Argus Panoptes is the name of the 100-eyed giant in Norse mythology."
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string
		sub      pipeline.Subscription
		want     string // diffs joined by "; "
	}{
		// Rule 2: whole tokens.
		{"cat to cats", "a cat", "a cats", keywords("cat", "cats"), "-cat: cat; +cats: cats"},
		{"cat to cart", "a cat", "a cart", keywords("cart"), "+cart: cart"},
		{"100 to 1000", "only 100 left", "only 1000 left", keywords("100", "1000"), "-100: 100; +1000: 1000"},
		{"no part of a word", "a cat", "a concatenation", keywords("cat"), "-cat: cat"},
		{"a border ends a phrase", "x", "x out of|stock", keywords("of stock"), ""},
		{"merged blocks complete a phrase", "run out|of stock", "run out of stock", keywords("out of"), "+out of: out of"},
		{"split blocks break a phrase", "run out of stock", "run out|of stock", keywords("out of"), "-out of: out of"},
		// Rule 4: phrases.
		{"completed by an edit", "Zeus is in stock", "Zeus is out of stock", keywords("out of stock", "stock"), "+out of stock: out of stock"},
		{"completed by an appended word", "the brown dog and fox", "the brown dog and fox brown", keywords("fox brown"), "+fox brown: fox brown"},
		{"destroyed by a removed word", "the brown dog and fox brown", "the brown dog and fox", keywords("fox brown"), "-fox brown: fox brown"},
		{"joined by a deletion", "out very of stock", "out of stock", keywords("out of"), "+out of: out of"},
		{"split by an insertion", "out of stock", "out very of stock", keywords("out of"), "-out of: out of"},
		{"order counts", "x", "x beta alpha", keywords("alpha beta"), ""},
		{"distance counts", "x", "x alpha q beta", keywords("alpha beta"), ""},
		{"punctuation does not separate", "x", "x alpha, (beta)!", keywords("alpha beta"), "+alpha beta: alpha, (beta"},
		{"kept in place", "argus one", "argus two", keywords("argus"), ""},
		{"moved within a group", "argus saw one two three four five six", "saw one two three four five six argus", keywords("argus"), ""},
		{"one more", "argus and zeus", "argus and zeus and argus", keywords("argus"), "+argus: and argus"},
		{"one less", "argus and zeus and argus", "argus and zeus", keywords("argus"), "-argus: and argus"},
		{"overlapping occurrences", "la la", "la la la", keywords("la la"), "+la la: la la"},
		{"repeats within a difference once", "x", "x a a a", keywords("a"), "+a: a a a"},
		{"two differences", "one 1 2 3 4 two", "one argus 1 2 3 4 two argus", keywords("argus"), "+argus: argus"}, // the reports are identical
		{"a duplicate keyword once", "x", "x argus", keywords("argus", "argus"), "+argus: argus"},
		{"two spellings", "x", "x argus", keywords("argus", "Argus"), "+argus: argus; +Argus: argus"},
		{"replaced", "Argus", "Zeus", keywords("Argus", "Zeus"), "-Argus: Argus; +Zeus: Zeus"},
		{"events: added", "Argus", "Zeus", with(keywords("Argus", "Zeus"), onlyAdded), "+Zeus: Zeus"},
		{"events: removed", "Argus", "Zeus", with(keywords("Argus", "Zeus"), onlyRemoved), "-Argus: Argus"},
		{"from nothing", "", "Argus sees", keywords("sees"), "+sees: Argus sees"},
		{"to nothing", "Argus sees", "", keywords("sees"), "-sees: Argus sees"},
		{"a phrase as long as can be", "x", "x a b c d e f g h i j k l m n o p", keywords("a b c d e f g h i j k l m n o p"),
			"+a b c d e f g h i j k l m n o p: a b c d e f g h i j k l m n o p"},
		// What is compared.
		{"case counts", "x", "x ARGUS", with(keywords("argus"), matchCase), ""},
		{"case ignored", "x", "x ARGUS", keywords("argus"), "+argus: ARGUS"},
		{"only the case changed", "Argus sees", "ARGUS sees", keywords("argus"), ""},
		{"marks count", "x", "x café", keywords("cafe"), ""},
		{"marks ignored", "x", "x café", with(keywords("cafe"), ignoreDiacritics), "+cafe: café"},
		{"forms of Unicode", "x", "x cafe\u0301", keywords("café"), "+café: cafe\u0301"},
		{"an apostrophe is one", "x", "x don’t", keywords("don't"), "+don't: don’t"},
		{"stems", "x", "x GODS", with(keywords("god"), stemWords), "+god: GODS"},
		{"stems of the keyword", "x", "x god", with(keywords("gods"), stemWords), "+gods: god"},
		{"a stem that stays", "one god", "one gods", with(keywords("god"), stemWords), ""},
		{"C++ is not C", "x", "x C++", keywords("C", "C++"), "+C++: C++"},
		{"a price", "now 12.50", "now 13.50", keywords("12.50", "13.50", "50"), "-12.50: 12.50; +13.50: 13.50"},
		{"Japanese", "東京都", "東京都知事", keywords("知事", "都知"), "+都知: 都知事; +知事: 知事"},
		{"Cyrillic", "x", "x Москва", keywords("москва"), "+москва: Москва"},
		// Signs.
		{"a sign", "ready ✘", "ready ✔", keywords("✔", "✘"), "-✘: ✘; +✔: ✔"},
		{"an emoji in a phrase", "state 🟢 x", "state 🔴 x", keywords("state 🔴"), "+state 🔴: state 🔴"},
		{"a style of an emoji", "x", "x ✔️", keywords("✔"), "+✔: ✔️"},
		{"a price with its currency", "now $10", "now €10", keywords("$10", "€ 10", "10 €", "10"), "-$10: $10; +€ 10: €10"},
		{"a minus", "at 5 degrees", "at −5 degrees", keywords("-5", "5"), "+-5: −5"},
		{"an operator", "x <= 3", "x >= 3", keywords(">=", ">= 3", "x 3"), "+>=: >=; +>= 3: >= 3"},
		{"a phrase without a sign, over signs", "x", "x price: ★ $10", keywords("price 10"), "+price 10: price: ★ $10"},
		{"a phrase that a sign splits", "foo bar", "foo ✔ bar", keywords("foo bar"), ""},
		{"a phrase with a sign, over signs", "x", "x fish ✔ + chips, fish + chips", keywords("fish + chips"), "+fish + chips: fish ✔ + chips, fish + chips"},
		{"terms with a sign", "x", "x € now only 5", with(keywords("5 €"), matchTerms), "+5 €: € now only 5"},
		{"a bullet is none", "x", "• x", keywords("x"), ""},
		// Rule 5: terms.
		{"the readme's example", "x", "x god house", with(keywords("House of the Gods"), likeOriginal), "+House of the Gods: god house"},
		{"terms: a word is missing", "x", "x house", with(keywords("House of the Gods"), likeOriginal), ""},
		{"terms: any order", "x", "x beta q alpha", with(keywords("alpha beta"), matchTerms), "+alpha beta: beta q alpha"},
		{"terms: in one difference", "one a b c d two", "one god a b c d house two", with(keywords("god house"), matchTerms), ""},
		{"terms: in one merged difference", "one a b c two", "one god a b c house two", with(keywords("god house"), matchTerms), "+god house: god a b c house"},
		{"terms: one of them was there", "one a god b two", "one house a god b argus two", with(keywords("god house"), matchTerms), "+god house: house a god b argus"},
		{"terms: outside of the difference", "god a b c d e", "god a b c d e house", with(keywords("god house"), matchTerms), ""},
		{"terms: none rose", "house a god b c d e f g", "a b god b house c d e f g", with(keywords("god house"), matchTerms), ""},
		{"terms: removed", "one god a house two", "one two", with(keywords("god house"), matchTerms), "-god house: god a house"},
		{"terms: a word twice is one word", "x", "x york new", with(keywords("new new york"), matchTerms), "+new new york: york new"},
		{"terms: a single word", "x", "x gods", with(keywords("the gods"), likeOriginal), "+the gods: gods"},
		// Stop words and phrases.
		{"filtered phrase over stop words", "x", "x house of the gods", with(with(keywords("house gods"), filterStopwords), matchPhrase), "+house gods: house of the gods"},
		{"filtered phrase with stop words", "x", "x house gods", with(with(keywords("house of gods"), filterStopwords), matchPhrase), "+house of gods: house gods"},
		{"a stop word within", "house of gods", "house in gods", with(with(keywords("house gods"), filterStopwords), matchPhrase), ""},
		{"a word within", "house of gods", "house of old gods", with(with(keywords("house gods"), filterStopwords), matchPhrase), "-house gods: house of gods"},
		// Rule 7: stop words only.
		{"The Who, phrase", "x", "x The Who", with(with(keywords("The Who"), filterStopwords), matchPhrase), "+The Who: The Who"},
		{"The Who, other words between", "x", "x The old Who", with(with(keywords("The Who"), filterStopwords), matchPhrase), ""},
		{"The Who, terms", "x", "x Who The", with(keywords("The Who"), filterStopwords), "+The Who: Who The"},
		{"nothing to compare", "x", "x !!! y", keywords("!!!"), ""},
		// Rule 6: the language.
		{"another language knows no English", "x", "x god house", with(with(keywords("House of the Gods"), likeOriginal), german), ""},
		{"an unknown language ignores case only", "x", "x GOD", with(with(keywords("god"), stemWords), german), "+god: GOD"},
		// Rule 8: the text.
		{"edits near to each other", "one two three four", "one 2 three 4", keywords("4"), "+4: 2 three 4"},
		{"edits apart", "a b c d e f", "A b c d e F", with(keywords("F"), matchCase), "+F: F"},
		{"to the last word of the occurrence", "a in stock now", "a out of stock now", keywords("of stock now"), "+of stock now: out of stock now"},
		{"to the first word of the occurrence", "a in stock", "a in stuck up", keywords("a in stuck"), "+a in stuck: a in stuck up"},
		// The original's own cases.
		{"Argus, as the released version was asked", argusOld, argusNew, with(keywords("the greek", "argus panoptes"), likeOriginal),
			"-the greek: Greek; +argus panoptes: Argus Panoptes is the name"},
	} {
		ch, _ := changeOf(64, groupTexts{old: c.old, new: c.new})
		if got := strings.Join(diffsOf(t, ch, c.sub), "; "); got != c.want {
			t.Errorf("%s: %q → %q\n got %s\nwant %s", c.name, c.old, c.new, got, c.want)
		}
	}
}
