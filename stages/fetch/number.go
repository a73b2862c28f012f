package fetch

import (
	"cmp"
	"errors"
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"github.com/vokter/vokter/pipeline"
)

// digitZeros are the zeros of the digits that are read besides ASCII: each is followed by 1 to 9.
var digitZeros = []rune{'٠', '۰', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '๐', '໐', '၀', '០', '０'}

// markReplacer replaces the marks in a number, so that it has only '.' and ',' as a decimal point, an
// apostrophe between groups of three and ' ' as a blank. It drops the marks of writing direction.
var markReplacer = strings.NewReplacer("٫", ".", "٬", "'", "’", "'", "ʼ", "'", "‘", "'", "´", "'", "`", "'", "S/.", "S/ ", "B/.", "B/ ", "−", "-", "．", ".", "，", ",",
	"\u200e", "", "\u200f", "", "\u061c", "")

// plainDigits returns s with ASCII digits and marks.
func plainDigits(s string) string {
	return markReplacer.Replace(strings.Map(func(r rune) rune {
		if r < 128 {
			return r
		}
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		for _, zero := range digitZeros {
			if r >= zero && r <= zero+9 {
				return '0' + r - zero
			}
		}
		return r
	}, s))
}

var (
	numberPattern = regexp.MustCompile(`-?(?:[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?(?:[^0-9]|$)|[0-9]+(?:[.,'][0-9]+)*)`)

	// barePointPattern is a decimal point without a digit before it. pointsPattern is the same with two points
	// behind the sign of a currency, as in "$..75".
	barePointPattern = regexp.MustCompile(`(^ *|[^\pL\pN.,' ] *|\pL\.? +)([.,][0-9])`)
	pointsPattern    = regexp.MustCompile(`(\p{Sc} ?)[.,]{2}([0-9])`)

	// looseDecimals are decimals whose point has blanks around it, as in "119. 95".
	looseDecimals = regexp.MustCompile(`^(?: ([.,]) ?|([.,]) )([0-9]{2,3})(?:[^0-9%]|$)`)
	// signAsPoint is a currency in the place of the decimal point, as in "35€99".
	signAsPoint = regexp.MustCompile(`^( ?)(\p{Sc}|zł|kr|лв)( ?)([0-9]{2})(?:[^\pL\pN.,'%]|$)`)
	// percentBehind is a percent sign behind a number.
	percentBehind = regexp.MustCompile(`^ ?[%٪]`)
	// scalePattern is what makes a number larger or smaller. shortScales do so with a currency alone: "5 M" may be a size.
	scalePattern = regexp.MustCompile(`(?i)^ ?(thousand|tsd|тыс|million|mio|mln|млн|billion|mrd|mld|млрд|万|億|亿|만|억|¢|cents?|[km]|bn)(?:s|en|es|\.)?(?:[^\pL]|[円元원]|$)`)
	// emptyDecimals are a dash in their place, as in "1.899,-".
	emptyDecimals = regexp.MustCompile(`^[.,][-–—]`)
	// negativeBefore is a minus before the sign of a currency, as in "-$5".
	negativeBefore = regexp.MustCompile(`(?:^|[^\pL\pN])-(?:[A-Z]{1,3})?\p{Sc}$`)
)

// scales are the decimal places by which scalePattern moves the point, by its words in small letters.
var scales = map[string]int{
	"thousand": 3, "tsd": 3, "тыс": 3, "million": 6, "mio": 6, "mln": 6, "млн": 6, "billion": 9, "mrd": 9, "mld": 9, "млрд": 9, "bn": 9, "k": 3, "m": 6,
	"万": 4, "億": 8, "亿": 8, "만": 4, "억": 8, "¢": -2, "cent": -2, "cents": -2,
}

var (
	errNoNumber  = errors.New("the value is not a number")
	errUndecided = errors.New("the value may be a thousand times as large: neither a currency nor the language of the page says whether its mark is a decimal point; " +
		"give the subscription a language, select its currency too, or another place that has it")
)

// findNumber finds the first number in s and returns it with a decimal point and without marks between its
// digits, such as "1299.00". unit is the code of its currency: declared, or if that is empty the one that stands
// beside the number, if there is one. tag is the language of the page, which may decide whether "1.299" is a
// little more than one. The error is errNoNumber if there is no number or one that cannot be read, and
// errUndecided if it can be read in two ways.
func findNumber(s, tag, declared string) (n, unit string, err error) {
	s = pointsPattern.ReplaceAllString(plainDigits(s), "${1}0.${2}")
	s = barePointPattern.ReplaceAllString(s, "${1}0$2")
	at := numberPattern.FindStringIndex(s)
	if at == nil {
		return "", "", errNoNumber
	}
	found := strings.TrimRightFunc(s[at[0]:at[1]], func(r rune) bool { return r < '0' || r > '9' })
	before, behind := s[:at[0]], s[at[0]+len(found):]
	if percentBehind.MatchString(behind) { // of a price that is lower by this share
		if n, unit, err = findNumber(truncate(behind, maxOfferText), tag, ""); err == nil && unit != "" {
			return n, cmp.Or(declared, unit), nil
		}
	}
	found, behind, split := joinDecimals(before, found, behind, tag)
	money := findCurrency(before, found, behind, tag)
	if split.found {
		money = split
	}
	if declared != "" {
		money = foundCurrency{found: true, code: declared}
	}
	sign := ""
	if rest, negative := strings.CutPrefix(found, "-"); negative {
		found = rest
		// "10-20" is a range, and "A-1" a name.
		if r := []rune(before); len(r) == 0 || !unicode.IsLetter(r[len(r)-1]) && !unicode.IsDigit(r[len(r)-1]) {
			sign = "-"
		}
	} else if negativeBefore.MatchString(before) {
		sign = "-"
	}
	whole, fraction := found, ""
	if emptyDecimals.MatchString(behind) {
		found += behind[:1] + "00" // the mark of "1.899,-" is the decimal point
		defer func() { n = strings.TrimSuffix(n, ".00") }()
	}
	i, decided := decimalPoint(found, money, tag)
	if !decided {
		return "", "", errUndecided
	}
	if i >= 0 {
		whole, fraction = found[:i], found[i+1:]
	}
	if !isGrouped(whole) || strings.Trim(fraction, "0123456789") != "" {
		return "", "", errNoNumber
	}
	whole = strings.TrimLeft(strings.NewReplacer(".", "", ",", "", "'", "", " ", "").Replace(whole), "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	if len(whole) > 30 || len(fraction) > 31 {
		return "", "", errNoNumber
	}
	whole, fraction = scaled(whole, fraction, behind, money.found)
	return sign + whole + fraction, money.code, nil
}

// scaled moves the point of a number as the word behind it says, such as a million.
func scaled(whole, fraction, behind string, isMoney bool) (string, string) {
	m := scalePattern.FindStringSubmatch(behind)
	if m == nil || len(m[1]) == 1 && (!isMoney || m[1] == "m") { // "5 m" is a length
		return whole, fraction
	}
	n, ok := pipeline.Amount(whole + fraction).Number()
	if !ok {
		return whole, fraction
	}
	places := scales[strings.ToLower(m[1])]
	n.Mul(n, new(big.Rat).SetFrac(pow10(max(places, 0)), pow10(max(-places, 0))))
	whole, fraction, _ = strings.Cut(n.FloatString(max(len(strings.TrimPrefix(fraction, "."))-places, 0)), ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	return whole, fraction
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// joinDecimals adds the decimals in behind to found where something stands between them: blanks around the point, or a
// currency in its place, which it returns. "10, 20 or 30 pieces" stays ten: what joins has to look like an amount.
func joinDecimals(before, found, behind, tag string) (number, rest string, sign foundCurrency) {
	inFront := currencyBefore(before, tag)
	if m := signAsPoint.FindStringSubmatch(behind); m != nil && !strings.ContainsAny(decimalTail(found), ".,") {
		blankBefore, mark, blankBehind := m[1] != "", m[2], m[3] != ""
		rest := behind[len(m[1])+len(mark)+len(m[3])+2:]
		// "20 $15" are two amounts, and so are "$20$15" and "5€ 10€".
		another := currencyBehind(rest, tag, false)
		joined := !inFront.found && (!another.found || another.gap > 1) && (!blankBefore || blankBehind) && (!blankBehind || endsAmount(rest))
		if money := findSign(mark, tag); joined && decimals(money.code) == 2 {
			return found + "." + m[4], rest, money
		}
	}
	if m := looseDecimals.FindStringSubmatch(behind); m != nil {
		mark := m[1] + m[2]
		rest := behind[strings.Index(behind, m[3])+len(m[3]):]
		next := currencyBehind(rest, tag, inFront.found)
		money := next.found && next.gap <= 2 || inFront.found && inFront.gap <= 2 && endsAmount(rest)
		alone := strings.TrimSpace(before+rest) == ""
		if (money || alone) && !strings.Contains(found, mark) {
			return found + mark + m[3], rest, foundCurrency{}
		}
	}
	return found, behind, foundCurrency{}
}

// decimalTail returns what stands behind the last group of three digits of a number.
func decimalTail(found string) string {
	i := strings.LastIndexAny(found, ".,")
	if i < 0 || len(found)-i-1 == 3 {
		return ""
	}
	return found[i:]
}

// endsAmount reports whether nothing that goes on with a sentence or a list stands at the beginning of s.
func endsAmount(s string) bool {
	s = strings.TrimLeft(s, " ")
	return s == "" || strings.ContainsRune("\n)]*/|", rune(s[0]))
}

// decimalPoint returns where the decimal point of s is, or -1 if it has none. decided is false if it may be read
// in two ways.
func decimalPoint(s string, money foundCurrency, tag string) (at int, decided bool) {
	last := strings.LastIndexAny(s, ".,")
	if last < 0 {
		return -1, true
	}
	mark := s[last : last+1]
	digits := len(s) - last - 1
	switch {
	case strings.Count(s, mark) > 1:
		return -1, true // it stands between groups
	case strings.ContainsAny(s[:last], ".,' "), digits != 3, last > 3, s[:last] == "0":
		return last, true
	case money.found && decimals(money.code) != 3:
		return pointOfAmount(last, mark, money.code, tag)
	case tag == "" && !money.found:
		return 0, false
	case mark == decimalMark(tag):
		return last, true
	}
	return -1, true
}

// pointOfAmount is decimalPoint for an amount with one mark and three digits behind it. Prices have no three decimal
// places, so that the mark stands between groups, unless those who write the language and those who use the currency
// both take it for the decimal point, as in "$3.499" for a gallon.
func pointOfAmount(last int, mark, code, tag string) (at int, decided bool) {
	switch home := homeMark(code); {
	case home != mark || decimals(code) == 0 || tag != "" && decimalMark(tag) != mark:
		return -1, true
	case tag == "":
		return 0, false
	}
	return last, true
}

// homeMark returns the decimal mark where a currency is used, or "" if that is not known.
func homeMark(code string) string {
	if code == "EUR" {
		return ","
	}
	if len(code) < 2 {
		return ""
	}
	region, err := language.ParseRegion(code[:2])
	if err != nil || !region.IsCountry() {
		return ""
	}
	base, _ := language.Make("und-" + region.String()).Base()
	return decimalMark(base.String() + "-" + region.String())
}

// decimals returns how many decimal places the amounts of a currency have. Those of an unknown one have two.
func decimals(code string) int {
	if n, ok := currency.GetDigits(code); ok {
		return int(n)
	}
	return 2
}

// decimalMark returns the decimal mark of a language, "." or ",".
func decimalMark(tag string) string {
	one, err := currency.NewAmount("1.5", "USD")
	if err != nil {
		return "."
	}
	// In "1,50 $" it is what stands behind the first digit.
	text := plainDigits(currency.NewFormatter(currency.NewLocale(tag)).Format(one))
	if _, rest, _ := strings.Cut(text, "1"); strings.HasPrefix(rest, ",") {
		return ","
	}
	return "."
}

// isGrouped reports whether the marks in whole stand between groups of three digits, or as in India of two
// and at the end three, and whether there is only one kind of mark.
func isGrouped(whole string) bool {
	groups := strings.FieldsFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if len(groups) < 2 {
		return true
	}
	kind := strings.Trim(whole, "0123456789")[0]
	if strings.Trim(whole, "0123456789"+string(kind)) != "" || len(groups[0]) > 3 || len(groups[len(groups)-1]) != 3 {
		return false
	}
	inner := groups[1 : len(groups)-1]
	three, two := true, len(groups[0]) <= 2
	for _, g := range inner {
		three, two = three && len(g) == 3, two && len(g) == 2
	}
	return three || two
}
