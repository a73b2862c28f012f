package match

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// say matches one subscription and returns its diffs as "+keyword: text" and "-keyword: text".
func say(t *testing.T, c *flow.Change, s pipeline.Subscription) []string {
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

func kw(words ...string) pipeline.Subscription { return pipeline.Subscription{Keywords: words} }

// with returns s with what change makes of it.
func with(s pipeline.Subscription, change func(*pipeline.Subscription)) pipeline.Subscription {
	change(&s)
	return s
}

func nocase(s *pipeline.Subscription)   { s.IgnoreCase = true }
func nomarks(s *pipeline.Subscription)  { s.IgnoreDiacritics = true }
func stem(s *pipeline.Subscription)     { s.Stem = true }
func filter1(s *pipeline.Subscription)  { s.FilterStopwords = true }
func phrase(s *pipeline.Subscription)   { s.Match = pipeline.MatchPhrase }
func terms(s *pipeline.Subscription)    { s.Match = pipeline.MatchTerms }
func moved(s *pipeline.Subscription)    { s.Moved = true }
func original(s *pipeline.Subscription) { s.Stem, s.FilterStopwords, s.IgnoreCase = true, true, true }
func german(s *pipeline.Subscription)   { s.Language = "de" }
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
		{"cat to cats", "a cat", "a cats", kw("cat", "cats"), "-cat: cat; +cats: cats"},
		{"cat to cart", "a cat", "a cart", kw("cart"), "+cart: cart"},
		{"100 to 1000", "only 100 left", "only 1000 left", kw("100", "1000"), "-100: 100; +1000: 1000"},
		{"no part of a word", "a cat", "a concatenation", kw("cat"), "-cat: cat"},
		{"a border ends a phrase", "x", "x out of|stock", kw("of stock"), ""},
		{"merged blocks complete a phrase", "run out|of stock", "run out of stock", kw("out of"), "+out of: out of"},
		{"split blocks break a phrase", "run out of stock", "run out|of stock", kw("out of"), "-out of: out of"},
		// Rule 4: phrases.
		{"completed by an edit", "Zeus is in stock", "Zeus is out of stock", kw("out of stock", "stock"), "+out of stock: out of stock"},
		{"completed by an appended word", "the brown dog and fox", "the brown dog and fox brown", kw("fox brown"), "+fox brown: fox brown"},
		{"destroyed by a removed word", "the brown dog and fox brown", "the brown dog and fox", kw("fox brown"), "-fox brown: fox brown"},
		{"joined by a deletion", "out very of stock", "out of stock", kw("out of"), "+out of: out of"},
		{"split by an insertion", "out of stock", "out very of stock", kw("out of"), "-out of: out of"},
		{"order counts", "x", "x beta alpha", kw("alpha beta"), ""},
		{"distance counts", "x", "x alpha q beta", kw("alpha beta"), ""},
		{"punctuation does not separate", "x", "x alpha, (beta)!", kw("alpha beta"), "+alpha beta: alpha, (beta"},
		{"kept in place", "argus one", "argus two", kw("argus"), ""},
		{"moved within a group", "argus saw one two three four five six", "saw one two three four five six argus", kw("argus"), ""},
		{"one more", "argus and zeus", "argus and zeus and argus", kw("argus"), "+argus: and argus"},
		{"one less", "argus and zeus and argus", "argus and zeus", kw("argus"), "-argus: and argus"},
		{"overlapping occurrences", "la la", "la la la", kw("la la"), "+la la: la la"},
		{"repeats within a difference once", "x", "x a a a", kw("a"), "+a: a a a"},
		{"two differences", "one 1 2 3 4 two", "one argus 1 2 3 4 two argus", kw("argus"), "+argus: argus"}, // the reports are identical
		{"a duplicate keyword once", "x", "x argus", kw("argus", "argus"), "+argus: argus"},
		{"two spellings", "x", "x argus", with(kw("argus", "Argus"), nocase), "+argus: argus; +Argus: argus"},
		{"replaced", "Argus", "Zeus", kw("Argus", "Zeus"), "-Argus: Argus; +Zeus: Zeus"},
		{"events: added", "Argus", "Zeus", with(kw("Argus", "Zeus"), onlyAdded), "+Zeus: Zeus"},
		{"events: removed", "Argus", "Zeus", with(kw("Argus", "Zeus"), onlyRemoved), "-Argus: Argus"},
		{"from nothing", "", "Argus sees", kw("sees"), "+sees: Argus sees"},
		{"to nothing", "Argus sees", "", kw("sees"), "-sees: Argus sees"},
		{"a phrase as long as can be", "x", "x a b c d e f g h i j k l m n o p", kw("a b c d e f g h i j k l m n o p"),
			"+a b c d e f g h i j k l m n o p: a b c d e f g h i j k l m n o p"},
		// What is compared.
		{"case counts", "x", "x ARGUS", kw("argus"), ""},
		{"case ignored", "x", "x ARGUS", with(kw("argus"), nocase), "+argus: ARGUS"},
		{"only the case changed", "Argus sees", "ARGUS sees", with(kw("argus"), nocase), ""},
		{"marks count", "x", "x café", kw("cafe"), ""},
		{"marks ignored", "x", "x café", with(kw("cafe"), nomarks), "+cafe: café"},
		{"forms of Unicode", "x", "x cafe\u0301", kw("café"), "+café: cafe\u0301"},
		{"an apostrophe is one", "x", "x don’t", kw("don't"), "+don't: don’t"},
		{"stems", "x", "x GODS", with(kw("god"), stem), "+god: GODS"},
		{"stems of the keyword", "x", "x god", with(kw("gods"), stem), "+gods: god"},
		{"a stem that stays", "one god", "one gods", with(kw("god"), stem), ""},
		{"C++ is not C", "x", "x C++", kw("C", "C++"), "+C++: C++"},
		{"a price", "now 12.50", "now 13.50", kw("12.50", "13.50", "50"), "-12.50: 12.50; +13.50: 13.50"},
		{"Japanese", "東京都", "東京都知事", kw("知事", "都知"), "+都知: 都知事; +知事: 知事"},
		{"Cyrillic", "x", "x Москва", with(kw("москва"), nocase), "+москва: Москва"},
		// Rule 5: terms.
		{"the readme's example", "x", "x god house", with(kw("House of the Gods"), original), "+House of the Gods: god house"},
		{"terms: a word is missing", "x", "x house", with(kw("House of the Gods"), original), ""},
		{"terms: any order", "x", "x beta q alpha", with(kw("alpha beta"), terms), "+alpha beta: beta q alpha"},
		{"terms: in one difference", "one a b c d two", "one god a b c d house two", with(kw("god house"), terms), ""},
		{"terms: in one merged difference", "one a b c two", "one god a b c house two", with(kw("god house"), terms), "+god house: god a b c house"},
		{"terms: one of them was there", "one a god b two", "one house a god b argus two", with(kw("god house"), terms), "+god house: house a god b argus"},
		{"terms: outside of the difference", "god a b c d e", "god a b c d e house", with(kw("god house"), terms), ""},
		{"terms: none rose", "house a god b c d e f g", "a b god b house c d e f g", with(kw("god house"), terms), ""},
		{"terms: removed", "one god a house two", "one two", with(kw("god house"), terms), "-god house: god a house"},
		{"terms: a word twice is one word", "x", "x york new", with(kw("new new york"), terms), "+new new york: york new"},
		{"terms: a single word", "x", "x gods", with(kw("the gods"), original), "+the gods: gods"},
		// Stop words and phrases.
		{"filtered phrase over stop words", "x", "x house of the gods", with(with(kw("house gods"), filter1), phrase), "+house gods: house of the gods"},
		{"filtered phrase with stop words", "x", "x house gods", with(with(kw("house of gods"), filter1), phrase), "+house of gods: house gods"},
		{"a stop word within", "house of gods", "house in gods", with(with(kw("house gods"), filter1), phrase), ""},
		{"a word within", "house of gods", "house of old gods", with(with(kw("house gods"), filter1), phrase), "-house gods: house of gods"},
		// Rule 7: stop words only.
		{"The Who, phrase", "x", "x The Who", with(with(kw("The Who"), filter1), phrase), "+The Who: The Who"},
		{"The Who, other words between", "x", "x The old Who", with(with(kw("The Who"), filter1), phrase), ""},
		{"The Who, terms", "x", "x Who The", with(kw("The Who"), filter1), "+The Who: Who The"},
		{"nothing to compare", "x", "x !!! y", kw("!!!"), ""},
		// Rule 6: the language.
		{"another language knows no English", "x", "x god house", with(with(kw("House of the Gods"), original), german), ""},
		{"an unknown language ignores case only", "x", "x GOD", with(with(kw("god"), stem), german), "+god: GOD"},
		// Rule 8: the text.
		{"edits near to each other", "one two three four", "one 2 three 4", kw("4"), "+4: 2 three 4"},
		{"edits apart", "a b c d e f", "A b c d e F", kw("F"), "+F: F"},
		{"to the last word of the occurrence", "a in stock now", "a out of stock now", kw("of stock now"), "+of stock now: out of stock now"},
		{"to the first word of the occurrence", "a in stock", "a in stuck up", kw("a in stuck"), "+a in stuck: a in stuck up"},
		// The original's own cases.
		{"Argus, as the released version was asked", argusOld, argusNew, with(kw("the greek", "argus panoptes"), original),
			"-the greek: Greek; +argus panoptes: Argus Panoptes is the name"},
	} {
		ch, _ := changeOf(64, pairOf{old: c.old, new: c.new})
		if got := strings.Join(say(t, ch, c.sub), "; "); got != c.want {
			t.Errorf("%s: %q → %q\n got %s\nwant %s", c.name, c.old, c.new, got, c.want)
		}
	}
}
