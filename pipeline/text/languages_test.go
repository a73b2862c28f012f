package text

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text/stemmers"
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
	langs := NewLanguages(stemmers.All()...)
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
		{"el", "ΣΊΣΥΦΟΣ", FormCase, "σισυφοσ"},
		{"el", "Σίσυφος", FormCase, "σισυφοσ"},
		{"", "ΣΊΣΥΦΟΣ", FormCase, "σίσυφοσ"},
		{"tr", "ISPARTA", FormCase, "ısparta"},
		{"tr", "İzmir", FormCase, "izmir"},
		{"en", "ISPARTA", FormCase, "isparta"},
		{"tr", "İstanbul'da", FormCase, "istanbul'da"},
		{"tr", "İstanbul’da", FormStem, "istanbul"},
		{"tr", "KİTAPLAR", FormStem, "kitap"},
		{"el", "οδός", FormCase, "οδοσ"},
		{"el", "οδός", 0, "οδός"},
		{"", "ΟΔΌΣ", FormCase, "οδόσ"},
		{"de", "STRASSEN", FormStem, "strass"},
		{"de", "Straße", FormStem, "strass"},
		{"ru", "Ёлками", FormStem, "елк"},
		{"ru", "Ёлка", FormCase, "ёлка"},
		{"ro", "ȘCOLI", FormStem, "şcol"},
		{"ro", "și", 0, "şi"},
		{"fa", "كتاب\u200Cهاي", 0, "کتابهای"},
		{"ar", "مـرحـبا", 0, "مرحبا"},
		{"ar", "كِتَابٌ", FormStem, "كتاب"},
		{"he", "צה״ל", 0, "צה\"ל"},
		{"he", "שָׁלוֹם", FormMarks, "שלום"},
		{"ja", "ＡＢＣ", FormCase, "abc"},
		{"ja", "ｶﾞ", FormCase, "ガ"},
		{"ja", "が", FormCase | FormMarks, "が"},
		{"fr", "CHEVAUX", FormStem, "cheval"},
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
	if langs.Normalizer("").IsStop("the") || langs.Normalizer("de").IsStop("the") || langs.Normalizer("ja").IsStop("の") {
		t.Error("a stop word in a language without a list")
	}
}

func TestFormOf(t *testing.T) {
	for _, c := range []struct {
		s    pipeline.Subscription
		want Form
	}{
		{pipeline.Subscription{}, FormCase},
		{pipeline.Subscription{MatchCase: true}, 0},
		{pipeline.Subscription{MatchCase: true, Stem: true}, FormStem | FormCase},
		{pipeline.Subscription{Stem: true}, FormStem | FormCase},
		{pipeline.Subscription{IgnoreDiacritics: true, Stem: true}, FormStem | FormCase | FormMarks},
	} {
		if got := FormOf(c.s); got != c.want {
			t.Errorf("FormOf(%+v) = %d, want %d", c.s, got, c.want)
		}
	}
}

type prefixStemmer string

func (c prefixStemmer) Language() string     { return string(c) }
func (c prefixStemmer) Stem(w string) string { return w[:min(3, len(w))] }

// TestAnalysis: what was made with the stemmers of this module is of use after a restart with the same ones.
func TestAnalysis(t *testing.T) {
	all := stemmers.All()
	for i, s := range all {
		if _, ok := s.(Snowball); !ok {
			t.Errorf("stemmer %d is no Snowball", i)
		}
	}
	l := NewLanguages(all...)
	slices.Reverse(all)
	if again := NewLanguages(all...); l.Generation() != 0 || l.Analysis() != again.Analysis() || l.Analysis() == NewLanguages().Analysis() {
		t.Errorf("generation %d, %q and %q", l.Generation(), l.Analysis(), again.Analysis())
	}
	if NewLanguages(stemmers.French, prefixStemmer("xx")).Generation() == 0 {
		t.Error("a stemmer of the program is one of this module")
	}
}

func TestRegister(t *testing.T) {
	langs := NewLanguages()
	before, g := langs.Normalizer("xx"), langs.Generation()
	langs.Register(prefixStemmer("XX"))
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
					langs.Register(prefixStemmer("yy"))
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
	for i := range 3 * maxHalfCache {
		n.Term("é"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+string(rune(0x4E00+i%20000)), FormStem)
	}
	if got := len(n.recentTerms) + len(n.olderTerms); got > 2*maxHalfCache {
		t.Errorf("%d entries, want at most %d", got, 2*maxHalfCache)
	}
}

// sampleTexts are in languages that share a script with others, from 40 letters on, or in a script
// of one language.
var sampleTexts = map[string]string{
	"en": "The giant with a hundred eyes watched over the heifer by day and by night, and never did all of his eyes sleep at once.",
	"de": "Der Riese mit den hundert Augen bewachte die Kuh bei Tag und bei Nacht, und niemals schliefen alle seine Augen zugleich.",
	"fr": "Le géant aux cent yeux surveillait la génisse de jour comme de nuit, et jamais tous ses yeux ne dormaient en même temps.",
	"es": "El gigante de los cien ojos vigilaba a la ternera de día y de noche, y nunca dormían todos sus ojos al mismo tiempo.",
	"it": "Il gigante dai cento occhi sorvegliava la giovenca di giorno e di notte, e mai tutti i suoi occhi dormivano insieme.",
	"pt": "O gigante dos cem olhos vigiava a novilha de dia e de noite, e nunca todos os seus olhos dormiam ao mesmo tempo.",
	"nl": "De reus met de honderd ogen bewaakte de koe bij dag en bij nacht, en nooit sliepen al zijn ogen tegelijk.",
	"sv": "Jätten med de hundra ögonen vaktade kvigan både dag och natt, och aldrig sov alla hans ögon på samma gång.",
	"da": "Kæmpen med de hundrede øjne vogtede over kvien hver dag efter solnedgang, og han sov aldrig, hvad der end blev sagt.",
	"no": "Kjempen med de hundre øynene voktet kvigen både dag og natt, og etter hva noen forteller, ble han aldri trett av å våke.",
	"ca": "El gegant dels cent ulls vigilava la vedella de dia i de nit, i mai no dormien tots els seus ulls alhora.",
	"cs": "Obr se sto očima hlídal jalovici ve dne i v noci a nikdy nespaly všechny jeho oči najednou, protože se střídaly.",
	"sk": "Obor so sto očami strážil jalovicu vo dne aj v noci a nikdy nespali všetky jeho oči naraz, pretože sa striedali.",
	"pl": "Olbrzym o stu oczach strzegł jałówki we dnie i w nocy, i nigdy wszystkie jego oczy nie spały jednocześnie.",
	"ro": "Uriașul cu o sută de ochi păzea juninca zi și noapte, și niciodată nu dormeau toți ochii lui în același timp.",
	"fi": "Satasilmäinen jättiläinen vartioi hiehoa yötä päivää, eivätkä kaikki hänen silmänsä koskaan nukkuneet yhtä aikaa.",
	"hu": "A százszemű óriás éjjel-nappal őrizte az üszőt, és soha nem aludt egyszerre minden szeme, mindig volt köztük éber.",
	"tr": "Yüz gözlü dev, düveyi gece gündüz gözetliyordu ve gözlerinin hepsi hiçbir zaman aynı anda uyumuyordu, derler.",
	"ru": "Великан с сотней глаз стерёг телицу днём и ночью, и никогда все его глаза не спали одновременно.",
	"uk": "Велетень із сотнею очей стеріг телицю вдень і вночі, і ніколи всі його очі не спали одночасно.",
	"bg": "Великанът със стоте очи пазеше юницата денем и нощем и никога всичките му очи не спяха едновременно.",
	"ar": "كان العملاق ذو المئة عين يحرس العجلة ليلا ونهارا ولم تكن عيونه كلها تنام في وقت واحد أبدا",
	"fa": "غول صد چشم شب و روز از گوساله نگهبانی می\u200Cکرد و هرگز همهٔ چشم\u200Cهایش با هم به خواب نمی\u200Cرفتند.",
	"he": "הענק בעל מאה העיניים שמר על הפרה ביום ובלילה, ומעולם לא ישנו כל עיניו בבת אחת.",
	"hi": "सौ आँखों वाला दानव दिन-रात बछिया की रखवाली करता था और उसकी सब आँखें कभी एक साथ नहीं सोती थीं।",
	"el": "Ο Πανόπτης", "th": "ยักษ์ร้อยตา", "ko": "백 개의 눈", "ja": "百の目を持つ巨人", "zh": "百眼巨人", "hy": "Հարյուրաչք", "ta": "நூறு கண்கள்",
}

const (
	danishPage = "Butikken i Torvegade har åbent alle hverdage fra klokken ti til seks, og om lørdagen lukker vi klokken to. " +
		"Du kan bestille på nettet og hente varerne samme dag. Vi skriver til dig, når ordren er klar. Sko og tøj kan byttes inden for " +
		"tredive dage, hvis mærket stadig sidder på. Det er også muligt at betale med gavekort. Er du i tvivl om størrelsen, hjælper " +
		"personalet gerne. Parkering findes bag bygningen, hvor de første to timer er gratis. Vi glæder os til at se dig. Restauranten " +
		"ved siden af serverer frokost hver dag, og børn under seks år spiser gratis sammen med deres forældre."
	norwegianPage = "Butikken i Torggata har åpent alle hverdager fra klokken ti til seks, og på lørdager stenger vi klokken to. " +
		"Du kan bestille på nettet og hente varene samme dag. Vi skriver til deg når ordren er klar. Sko og klær kan byttes innen " +
		"tretti dager hvis merket fortsatt sitter på. Det er også mulig å betale med gavekort. Er du i tvil om størrelsen, hjelper " +
		"de ansatte gjerne. Parkering finnes bak bygningen, der de første to timene er gratis. Vi gleder oss til å se deg. Restauranten " +
		"ved siden av serverer lunsj hver dag, og barn under seks år spiser gratis sammen med foreldrene sine."
)

func TestDetect(t *testing.T) {
	for want, content := range sampleTexts {
		for range 3 {
			if got := Detect(content); got != want {
				t.Errorf("%q is in %q, want %q", content, got, want)
			}
		}
	}
	english, german := sampleTexts["en"], sampleTexts["de"]
	if allocs := testing.AllocsPerRun(10, func() { Detect(strings.Repeat(english+"\n", 10)) }); allocs > 100 {
		t.Errorf("%v allocations: the detector was asked about a text that its stop words decide", allocs)
	}
	for _, c := range []struct{ name, content, want string }{
		{"nothing", "", ""},
		{"numbers", "12 34\n", ""},
		{"39 letters", german[:47], ""},
		{"three letters of one script", "αβγ", ""},
		{"a Greek word in English", english + " Πανόπτης", "en"},
		{"the longest lines count", strings.Repeat("Startseite\n", 5) + english + "\n" + english + "\n", "en"},
		{"far more than a sample", strings.Repeat(english+"\n", 500), "en"},
		{"one line, far more than a sample", strings.Repeat(english+" ", 500), "en"},
		{"more than the prefix", strings.Repeat(english+"\n", 600) + strings.Repeat(german, 100), "en"},
		{"the prefix ends in a letter", strings.Repeat("я", maxSamplePrefix), ""},
		{"Han with few kana", strings.Repeat("東京都知事選挙開票速報", 5) + "の", ""},
		{"mostly Han, with kana", "東京都知事選挙の開票速報", "ja"},
		{"Nynorsk", "Kjempa med dei hundre auga vakta kviga både dag og natt, og aldri sov alle auga hans på same tid, seier dei.", "no"},
		{"a line of Danish", "Du kan hente varen i butikken efter to dage, hvis der er noget på lager af den.", "da"},
		{"a line of Norwegian", "Du kan hente varen i butikken etter to dager hvis noe av den er på lager.", "no"},
		{"short Hebrew", "החנות פתוחה כל יום", "he"},
		{"Yiddish", "אַלע מענטשן ווערן געבוירן פֿרײַ און גלײַך אין כּבֿוד און רעכט. יעדער ווערט באַשאָנקן מיט פֿאַרשטאַנד און געוויסן.", "ydd"},
		{"short Russian", "Нет в наличии", "ru"},
		{"short Russian with ы", "Цены и скидки", "ru"},
		{"short Russian with a hard sign", "Вход и подъезд", "ru"},
		{"one Russian word", "Новости", "ru"},
		{"short Ukrainian", "Немає в наявності", "uk"},
		{"short Bulgarian", "Няма го на склад, но ще дойде", "bg"},
		{"short Bulgarian with a hard sign", "Първа страница", "bg"},
		{"short Belarusian", "Ёсць у наяўнасці", ""},
		{"short Serbian", "Нема на стању ђак", ""},
		{"short Greek", "Εξαντλήθηκε", "el"},
		{"short Arabic", "غير متوفر حاليا", "ar"},
		{"short Persian", "قیمت گندم", "fa"},
		{"short Urdu", "یہ دستیاب نہیں ہے", ""},
		{"short Hindi", "स्टॉक में नहीं है", "hi"},
		{"short Marathi", "सफरचंद आणि केळी", ""},
		{"a Russian name in English", "Tickets for Нева on sale", ""},
		{"short Dutch", "De winkel is elke dag open van negen tot vijf. Wij verkopen brood en koek.", "nl"},
		{"short Afrikaans", "Die winkel is elke dag oop van nege tot vyf. Ons verkoop brood en koek aan almal.", "af"},
		{"Afrikaans, which has no list", "Die weer in Kaapstad is vandag baie warm en ons gaan strand toe, en die kinders speel buite in die tuin.", "af"},
		{"Danish and Norwegian alike", "Restaurant og bar i Torvgade, kjole og sko, mandag fredag lørdag, telefon.", ""},
		{"100 words of Danish", danishPage, "da"},
		{"100 words of Norwegian", norwegianPage, "no"},
		{"Serbian is not Bulgarian", "Див са стотину очију чувао је јуницу дању и ноћу, и никада нису све његове очи спавале у исто време.", "sr"},
		{"Chinese that quotes kana", strings.Repeat("日本的平假名包括这个字", 5) + "の", "zh"},
	} {
		if c.name == "Han with few kana" {
			c.want = "zh"
		}
		if got := Detect(c.content); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := len([]rune(longestLines(strings.Repeat("ab é\n", 1000)))); got > maxSampleRunes+1 {
		t.Errorf("a sample of %d runes", got)
	}
}

func TestLanguageChoice(t *testing.T) {
	all := LanguageChoice{Subscription: "sv-FI", Document: "de", Page: "fr", Text: "it", Fallback: "es"}
	for _, c := range []struct {
		drop   func(*LanguageChoice)
		want   string
		source LanguageSource
	}{
		{func(*LanguageChoice) {}, "sv", FromSubscription},
		{func(c *LanguageChoice) { c.Subscription = "no tag" }, "de", FromDocument},
		{func(c *LanguageChoice) { c.Document = "" }, "fr", FromPage},
		{func(c *LanguageChoice) { c.Page = "und" }, "it", FromText},
		{func(c *LanguageChoice) { c.Text = "" }, "es", FromFallback},
		{func(c *LanguageChoice) { c.Fallback = "" }, "en", FromFallback},
	} {
		c.drop(&all)
		if got, source := all.Language(); got != c.want || source != c.source {
			t.Errorf("%+v: %q from %s, want %q from %s", all, got, source, c.want, c.source)
		}
	}
	for tag, want := range map[string]string{"nb-NO": "no", "nn": "no", "EN_us": "en", "iw": "he", "mul": "en", "zxx": "en", " de ": "de", "ckb": "ckb"} {
		if got, _ := (LanguageChoice{Page: tag}).Language(); got != want {
			t.Errorf("%q is %q, want %q", tag, got, want)
		}
	}
}

func TestParseStopwords(t *testing.T) {
	got := ParseStopwords(" | comment\na  b | c\n\nd")
	if strings.Join(got, ",") != "a,b,d" {
		t.Errorf("got %q", got)
	}
}

func TestBuiltinStopwords(t *testing.T) {
	langs := NewLanguages()
	if n := len(langs.WithStopwords()); n < 30 {
		t.Errorf("stop words of %d languages", n)
	}
	for _, l := range langs.All() {
		n := langs.Normalizer(l.Code)
		for _, w := range l.Stopwords {
			for _, token := range tokenTexts(w) {
				if !n.IsStop(token) {
					t.Errorf("%s: IsStop(%q) is false", l.Name, token)
				}
			}
		}
	}
}

// TestDocumented holds the table of docs/text.md against the registry.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/text.md")
	if err != nil {
		t.Fatal(err)
	}
	languages := NewLanguages(stemmers.All()...)
	var table strings.Builder
	for _, b := range builtinTable {
		l := builtinLanguages()[b.code]
		stems, stopwords := "", ""
		if b.stems {
			stems = "yes"
		}
		if has := languages.Normalizer(b.code).HasStemmer(); has != HasStems(b.code+"-XX") {
			t.Errorf("%s has a stemmer: %v", b.name, has)
		}
		if n := len(l.Stopwords); n > 0 {
			stopwords = strconv.Itoa(n)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", l.Code, l.Name, stems, stopwords)
	}
	if !strings.Contains(string(doc), table.String()) {
		t.Errorf("docs/text.md lacks this table of languages:\n%s", table.String())
	}
}
