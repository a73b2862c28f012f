package values

import (
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/vokter/vokter/pipeline"
)

// scale is what a word behind a number, such as a million, makes of it.
type scale struct {
	places    int    // by which the decimal point moves
	rest      string // what stands behind the word
	isShort   bool   // it counts beside a currency alone: "5 M" may be a size
	isOpen    bool   // nobody knows whether it counts, or for how much
	isMillion bool   // it is "m", which is a million in "$5m" and may be a length in "5 m €"
}

// scales are the words of scale in small letters, by the decimal places that they move the point. shortScales are those
// that stand for other things, too.
var (
	scales = scaleWords(map[int]string{
		-2: "¢ cent cents pence коп копеек копейки копейка",
		2:  "hundred",
		3: "thousand tsd tausend duizend tusen tusind tuhat tuhatta тыс тысяч тысячи тысяча тис тисяч тисячі хил хиляди ribu nghìn ngàn พัน ألف آلاف هزار " +
			"हज़ार हजार হাজার",
		5: "lakh lakhs लाख লাখ แสน",
		6: "mio mln млн millón millones milhão milhões milioane milyon miljoen miljoenen miljoona miljoonaa millió triệu juta ล้าน مليون ملايين میلیون εκατ " +
			"εκατομμύρια εκατομμύριο",
		7:  "crore crores करोड़ কোটি",
		9:  "mrd mrds mld mlrd млрд milyar พันล้าน bilhão bilhões tỷ مليار میلیارد",
		12: "трлн billón billones biljoen",
	})
	shortScales = scaleWords(map[int]string{3: "k rb mii mila mille ezer tis tys", 6: "m mn jt", 5: "lac lacs", 7: "cr", 9: "bn md mds", 12: "tn"})
	// scaleStems are the beginnings of words that are inflected.
	scaleStems = []struct {
		stem   string
		places int
	}{
		{"milliard", 9}, {"miliard", 9}, {"miljard", 9}, {"milijard", 9}, {"миллиард", 9}, {"мільярд", 9}, {"милиард", 9}, {"милијард", 9},
		{"million", 6}, {"milion", 6}, {"miljon", 6}, {"milijun", 6}, {"milijon", 6}, {"миллион", 6}, {"мільйон", 6}, {"милион", 6}, {"bilion", 12}, {"biljon", 12}, //nolint:misspell // other languages
	}
	// localScales differ from language to language. Where that of the page has none of them, nobody knows for how much
	// they stand.
	localScales = map[string]map[string]int{
		"mil":      {"es": 3, "pt": 3, "gl": 3, "ca": 3, "en": 6, "cs": 6, "sk": 6, "sl": 6, "hr": 6},
		"bin":      {"tr": 3},
		"tr":       {"vi": 6},
		"billion":  {"en": 9, "de": 12, "fr": 12, "da": 12, "nb": 12, "no": 12},
		"trillion": {"en": 12, "de": 18, "fr": 18, "da": 18, "nb": 18, "no": 18},
	}
	// characterScales stand at a number without a blank, one behind another.
	characterScales = map[rune]int{'十': 1, '百': 2, '千': 3, '万': 4, '萬': 4, '億': 8, '亿': 8, '兆': 12, '백': 2, '천': 3, '만': 4, '억': 8, '조': 12}
)

var (
	// thousandEuros are the letters at the euro in "450 T€" and "3 MEUR". ofMillions stands between a scale and its currency.
	thousandEuros = regexp.MustCompile(`^[kKTM](?:€|EUR\b)`)
	ofMillions    = regexp.MustCompile(`^ (?:de |di |d['’])`)
	// openCents are cents, pages, carats or more, by languages in which they are often cents.
	openCents = map[string]*regexp.Regexp{
		"en": regexp.MustCompile(`^[0-9]{1,2}p\b`), "de": regexp.MustCompile(`^[0-9]{1,2} ?ct\b`), "nl": regexp.MustCompile(`^[0-9]{1,2} ?ct\b`),
	}
	// openLakh is what stands behind rupees by the litre or by the hundred thousand.
	openLakh = regexp.MustCompile(`^ ?L\b`)
)

func scaleWords(byPlaces map[int]string) map[string]int {
	places := map[string]int{}
	for n, words := range byPlaces {
		for _, word := range strings.Fields(words) {
			places[word] = n
		}
	}
	return places
}

// findScale returns the scale at the beginning of behind, which stands behind a number, on a page in the language tag.
// Several words make one, as in "mil millones".
func findScale(behind, tag string) scale {
	s, found := nextScale(behind, tag)
	if !found {
		return scale{rest: behind}
	}
	for range 2 {
		next, found := nextScale(s.rest, tag)
		if !found || s.places < 0 || next.places < 0 || next.isShort {
			break
		}
		s = scale{s.places + next.places, next.rest, s.isShort, s.isOpen || next.isOpen, false}
	}
	s.rest = ofMillions.ReplaceAllString(s.rest, " ")
	return s
}

func nextScale(behind, tag string) (s scale, found bool) {
	text := strings.TrimPrefix(behind, " ")
	n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '¢' })
	if n < 0 {
		n = len(text)
	}
	if n == 0 {
		return scale{}, false
	}
	n = len(strings.TrimSuffix(text[:n], "บาท")) // Thai has no blanks
	word := strings.ToLower(text[:n])
	rest := strings.TrimPrefix(text[n:], ".")
	if thousandEuros.MatchString(text) {
		return scale{places: map[string]int{"k": 3, "t": 3, "m": 6}[word[:1]], rest: text[1:]}, true
	}
	if places, ok := scales[word]; ok {
		return scale{places: places, rest: rest}, true
	}
	if places, ok := shortScales[word]; ok {
		return scale{places: places, rest: rest, isShort: true, isOpen: text[:n] == "m", isMillion: text[:n] == "m"}, true
	}
	for of, places := range localScales {
		if word == of || word == of+"s" || len(of) > 3 && strings.HasPrefix(word, of) {
			n, known := places[baseOf(tag)]
			if !known && len(places) == 1 {
				break // a word of other languages
			}
			return scale{places: n, rest: rest, isShort: len(of) == 3, isOpen: !known}, true
		}
	}
	for _, inflected := range scaleStems {
		if strings.HasPrefix(word, inflected.stem) {
			return scale{places: inflected.places, rest: rest}, true
		}
	}
	first, size := utf8.DecodeRuneInString(text)
	if places, ok := characterScales[first]; ok {
		next, _ := utf8.DecodeRuneInString(text[size:])
		if _, more := characterScales[next]; more || size == n || strings.ContainsRune("円元원圓圆", next) {
			return scale{places: places, rest: text[size:]}, true
		}
	}
	return scale{}, false
}

// baseOf returns the language of a tag without its region.
func baseOf(tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return ""
	}
	base, _ := t.Base()
	return base.String()
}

// move moves the point of a number, whose fraction has it, by the places of s.
func (s scale) move(whole, fraction string) (string, string) {
	n, ok := pipeline.Amount(whole + fraction).Number()
	if s.places == 0 || !ok {
		return whole, fraction
	}
	n.Mul(n, new(big.Rat).SetFrac(pow10(max(s.places, 0)), pow10(max(-s.places, 0))))
	whole, fraction, _ = strings.Cut(n.FloatString(max(len(strings.TrimPrefix(fraction, "."))-s.places, 0)), ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	return whole, fraction
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
