package text

import (
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestFold(t *testing.T) {
	for _, class := range [][]string{ // equal within, different between
		{"Argus", "ARGUS", "árgus"}, {"σίσυφος", "ΣΊΣΥΦΟΣ", "Σισυφοσ"}, {"Straße", "STRASSE"}, {"Łódź", "lodz", "ŁÓDŹ"},
		{"é", "e\u0301", "E"}, {"が"}, {"か"}, {"й"}, {"и"}, {"नमस्ते"}, {"नमसत"}, {"don’t", "don't", "DON'T"},
		{"مُحَمَّد", "محمد"}, {"שָׁלוֹם", "שלום"}, {"ﬁn", "fin"}, {"soft\u00ADly", "softly"}, {"C++"}, {"C"}, {"Ørsted", "orsted"},
	} {
		for _, w := range class {
			if got, want := Fold(w), Fold(class[0]); got != want {
				t.Errorf("Fold(%q) = %q, but Fold(%q) = %q", w, got, class[0], want)
			}
			if Fold(Fold(w)) != Fold(w) {
				t.Errorf("Fold(%q) is not stable", w)
			}
		}
	}
	for _, p := range [][2]string{{"が", "か"}, {"й", "и"}, {"नमस्ते", "नमसत"}, {"C++", "C"}} {
		if Fold(p[0]) == Fold(p[1]) {
			t.Errorf("%q and %q fold to the same", p[0], p[1])
		}
	}
}

func TestTerm(t *testing.T) {
	langs := NewLanguages()
	for _, c := range []struct {
		lang, token string
		form        Form
		want        string
	}{
		{"en", "Panoptes", 0, "Panoptes"},
		{"en", "cafe\u0301", 0, "café"},
		{"en", "don’t", 0, "don't"},
		{"en", "Cafés", FormCase, "cafés"},
		{"en", "Cafés", FormMarks, "Cafes"},
		{"en", "Cafés", FormCase | FormMarks, "cafes"},
		{"en", "Cafés", FormStem, "café"},
		{"en", "Cafés", FormStem | FormMarks, "cafe"},
		{"en", "GODS", FormStem, "god"},
		{"en-GB", "Argus's", FormStem, "argus"},
		{"en", "being", FormStem, "be"}, // a stop word is stemmed too
		{"en", "C++", FormStem, "c++"},
		{"en", "12.50s", FormStem, "12.50s"},
		{"", "GODS", FormStem, "gods"},
		{"de", "Straße", FormCase, "strasse"},
		{"el", "ΣΊΣΥΦΟΣ", FormCase, "σίσυφοσ"},
		{"tr", "ISPARTA", FormCase, "ısparta"},
		{"tr", "İzmir", FormCase, "izmir"},
		{"en", "ISPARTA", FormCase, "isparta"},
	} {
		n := langs.Normalizer(c.lang)
		for range 2 { // the second from the cache
			if got := n.Term(c.token, c.form); got != c.want {
				t.Errorf("%s: Term(%q, %d) = %q, want %q", c.lang, c.token, c.form, got, c.want)
			}
		}
	}
	en := langs.Normalizer("en")
	for w, want := range map[string]bool{"the": true, "The": true, "WHO": true, "don't": true, "don’t": true, "greek": false, "": false} {
		if got := en.IsStop(w); got != want {
			t.Errorf("IsStop(%q) = %v", w, got)
		}
	}
	if langs.Normalizer("").IsStop("the") || langs.Normalizer("de").IsStop("the") {
		t.Error("a stop word in a language without a list")
	}
}

func TestFormOf(t *testing.T) {
	for _, c := range []struct {
		s    pipeline.Subscription
		want Form
	}{
		{pipeline.Subscription{}, 0},
		{pipeline.Subscription{IgnoreCase: true}, FormCase},
		{pipeline.Subscription{Stem: true}, FormStem | FormCase},
		{pipeline.Subscription{IgnoreDiacritics: true, Stem: true}, FormStem | FormCase | FormMarks},
	} {
		if got := FormOf(c.s); got != c.want {
			t.Errorf("FormOf(%+v) = %d, want %d", c.s, got, c.want)
		}
	}
}

type cutter string

func (c cutter) Language() string     { return string(c) }
func (c cutter) Stem(w string) string { return w[:min(3, len(w))] }

func TestRegister(t *testing.T) {
	langs := NewLanguages()
	before, g := langs.Normalizer("xx"), langs.Generation()
	langs.Register(cutter("XX"))
	langs.RegisterStopwords("xx", []string{"Bla"})
	if langs.Generation() == g {
		t.Error("the generation stayed")
	}
	n := langs.Normalizer("xx")
	if got := n.Term("ABCDEF", FormStem); got != "abc" {
		t.Errorf("registered stemmer gives %q", got)
	}
	if !n.IsStop("bla") || n.IsStop("xxx") {
		t.Error("registered stop words are wrong")
	}
	if got := before.Term("ABCDEF", FormStem); got != "abcdef" {
		t.Errorf("an earlier Normalizer changed: %q", got)
	}
	langs.Unregister("xx")
	langs.RegisterStopwords("xx", nil)
	if n := langs.Normalizer("xx"); n.Term("ABCDEF", FormStem) != "abcdef" || n.IsStop("bla") {
		t.Error("an unregistered language still works")
	}
}

// TestLanguagesConcurrently is for the race detector.
func TestLanguagesConcurrently(t *testing.T) {
	langs := NewLanguages()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 500 {
				if n := langs.Normalizer("en"); n.Term("running", FormStem) != "run" || !n.IsStop("the") {
					t.Error("English is wrong")
				}
				langs.Normalizer("yy").Term(strings.Repeat("é", j%40), FormStem)
				if i == 0 && j%10 == 0 {
					langs.Register(cutter("yy"))
				} else if i == 1 && j%10 == 0 {
					langs.Unregister("yy")
				}
			}
		})
	}
	wg.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	n := NewLanguages().Normalizer("en")
	for i := range 3 * cacheHalf {
		n.Term("é"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+string(rune(0x4E00+i%20000)), FormStem)
	}
	if got := len(n.young) + len(n.aged); got > 2*cacheHalf {
		t.Errorf("%d entries, want at most %d", got, 2*cacheHalf)
	}
}

func TestDetect(t *testing.T) {
	const (
		english = "The giant with a hundred eyes watched over the heifer by day and by night, and never did all of his eyes sleep at once."
		german  = "Der Riese mit den hundert Augen bewachte die Kuh bei Tag und bei Nacht, und niemals schliefen alle seine Augen zugleich."
	)
	for _, c := range []struct{ name, content, declared, last, want string }{
		{"clear", english + "\n", "de", "fr", "en"},
		{"clear without declaration", german + "\n", "", "", "de"},
		{"nothing at all", "", "", "", ""},
		{"declared", "12 34\n", "en-US", "fr", "en"},
		{"declared nonsense", "12 34\n", "x y z", "fr", "fr"},
		{"last", "12 34\n", "", "fr", "fr"},
		{"the longest lines count", strings.Repeat("Startseite\n", 5) + english + "\n" + english + "\n", "", "", "en"},
		{"far more than a sample", strings.Repeat(english+"\n", 500), "", "", "en"},
		{"one line, far more than a sample", strings.Repeat(english+" ", 500), "", "", "en"},
		{"Han declared as Japanese", "東京都知事選挙\n", "ja", "", "ja"},
		{"Han", "東京都知事選挙\n", "", "", "zh"},
		{"Norwegian is one", "1\n", "nb-NO", "", "no"},
	} {
		for range 3 {
			if got := Detect(c.content, c.declared, c.last); got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		}
	}
	if got := len([]rune(sample(strings.Repeat("ab é\n", 1000)))); got > sampleRunes+1 {
		t.Errorf("a sample of %d runes", got)
	}
}

func TestParseStopwords(t *testing.T) {
	got := ParseStopwords(" | comment\na  b | c\n\nd")
	if strings.Join(got, ",") != "a,b,d" {
		t.Errorf("got %q", got)
	}
	if n := len(ParseStopwords(englishStopwords)); n != 174 {
		t.Errorf("%d English stop words, want 174", n)
	}
}
