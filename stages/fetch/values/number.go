package values

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/bojanz/currency"
	cldr "golang.org/x/text/currency"
	"golang.org/x/text/language"
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

	// exponent is that of a number as programs write it, which is read as none. minutes are those of a time.
	exponent = regexp.MustCompile(`^[eE][+-]?[0-9]+`)
	minutes  = regexp.MustCompile(`^(?::[0-9]{2})+`)
	// conversion is what stands between an amount and the same in another currency, as in "KD 3 (€9)".
	conversion = regexp.MustCompile(`^ ?[(\[≈~=/]`)
	// percentBehind is a percent sign behind a number.
	percentBehind = regexp.MustCompile(`^ ?[%٪]`)
	// emptyDecimals are a dash in their place, as in "1.899,-".
	emptyDecimals = regexp.MustCompile(`^[.,][-–—]`)
	// negativeBefore is a minus before the sign of a currency, as in "-$5".
	negativeBefore = regexp.MustCompile(`(?:^|[^\pL\pN])-(?:[A-Z]{1,3})?\p{Sc}$`)
)

var (
	errNoNumber  = errors.New("the value is not a number")
	errUndecided = errors.New("the value may be a thousand times as large: neither a currency nor the language of the page says whether its mark is a decimal point; " +
		"give the subscription a language, select its currency too, or another place that has it")
	errScale = errors.New("the value may be many times as large: nobody knows whether a word such as million, or a currency, behind it belongs to it; " +
		"select the number alone, or another place that has it")
	errSplit = errors.New("the value may be a hundred times as large: the last two of its digits stand in an element of their own, as cents do, " +
		"and there is no currency beside them; select its currency too, or another place that has it")
)

// foundNumber is a number in a text.
type foundNumber struct {
	number    string // as findNumber returns it
	money     foundCurrency
	isPercent bool
	isName    bool // it is as likely to be part of a name, as in "Model KD 3"
	from, end int  // where it stands
	err       error
}

// maxNumbers and maxNumberText are how many numbers, and bytes, are read to find one with a currency.
const (
	maxNumbers    = 50
	maxNumberText = 2000
	beforeText    = 64 // what is read before a number
)

// findNumber finds a number in s and returns it with a decimal point and without marks between its digits, such as
// "1299.00": the first one with a currency beside it, or else the first one. One with two letters in front that may be
// part of a name counts only if no other has a certain currency. Of a range that is its beginning. unit is the code of
// the currency: declared, which makes the first number count, or if that is empty the one beside the number. tag is the
// language of the page, which may decide whether "1.299" is a little more than one. The error is errNoNumber if there
// is no number or one that cannot be read, and errUndecided, errScale or errSplit if it can be read in two
// ways.
func findNumber(s, tag, declared string) (n, unit string, err error) {
	f := chooseNumber(s, tag, declared)
	return f.number, f.money.code, f.err
}

// chooseNumber returns what findNumber does, with all that is known of the number.
func chooseNumber(s, tag, declared string) foundNumber {
	s = prepared(s, tag, declared)
	first := readNumber(s, 0, tag, declaredCurrency(declared))
	chosen, previous := first, first
	isOpen := !first.money.found || first.isName
	for i := 1; i < maxNumbers && isOpen && previous.end > 0 && previous.end < maxNumberText; i++ {
		next := readNumber(s, previous.end, tag, foundCurrency{})
		if next.end == 0 {
			break
		}
		isCertain := first.isPercent && !first.isName || !next.money.isWord && !next.isName
		if next.money.found && isCertain && !next.isPercent && (!first.isName || next.money.sign != first.money.sign) {
			chosen = next
			break
		}
		previous = next
	}
	if chosen.err != nil {
		return foundNumber{err: chosen.err}
	}
	return chosen
}

// prepared returns s with ASCII digits, a digit before each point, and one number where several signs or elements make
// one.
func prepared(s, tag, declared string) string {
	s = joinMyriads(plainDigits(s))
	s = pointsPattern.ReplaceAllString(s, "${1}0.${2}")
	s = barePointPattern.ReplaceAllString(s, "${1}0$2")
	return joinSplit(s, tag, declared)
}

// declaredCurrency is a currency that a page declares beside a number, or none if code is empty.
func declaredCurrency(code string) foundCurrency { return foundCurrency{found: code != "", code: code} }

// readNumber reads the first number of s behind from. Its end is 0 if there is none. Its currency is known, or else
// the one beside it.
func readNumber(s string, from int, tag string, known foundCurrency) (f foundNumber) {
	at := numberPattern.FindStringIndex(s[from:])
	if at == nil {
		return foundNumber{err: errNoNumber}
	}
	f.from = from + at[0]
	found := strings.TrimRightFunc(s[f.from:from+at[1]], func(r rune) bool { return r < '0' || r > '9' })
	before, behind := s[max(f.from-beforeText, 0):f.from], s[f.from+len(found):]
	if e := exponent.FindString(behind); e != "" {
		f.end, f.err = f.from+len(found)+len(e), errNoNumber
		return f
	}
	found, behind, joined := joinDecimals(before, found, behind, tag)
	f.end = len(s) - len(behind) + len(minutes.FindString(behind))
	if known.found {
		joined = known
	}
	if strings.HasPrefix(behind, split) || strings.HasSuffix(before, split) {
		f.money, f.err = findCurrency(before, found, behind, tag), errSplit
		if joined.found {
			f.money = joined
		}
		return f
	}
	r := findRange(behind, tag)
	f.isPercent = percentBehind.MatchString(r.rest)
	if f.number, f.money, f.err = readAmount(before, found, r.rest, tag, joined); r.found {
		f.checkRange(r, before, found, behind, tag, joined)
	}
	f.isName = f.money.isName && f.money.inFront && (strings.HasSuffix(strings.TrimRight(before, " :.#"), "ID") ||
		strings.Trim(found, "0123456789") == "" && !conversion.MatchString(behind))
	return f
}

// readAmount returns found, a number between two texts, as findNumber returns it, and its currency, which is known or
// else the one beside it.
func readAmount(before, found, behind, tag string, known foundCurrency) (n string, money foundCurrency, err error) {
	s := findScale(behind, tag)
	if money = known; !known.found {
		money = findCurrency(before, found, s.rest, tag)
	}
	if s.isShort && !money.found {
		s = scale{rest: behind}
		money = findCurrency(before, found, behind, tag)
	}
	if money.code == "INR" && openLakh.MatchString(behind) {
		s.isOpen = true
	} else if cents := openCents[baseOf(tag)]; !money.found && cents != nil && cents.MatchString(found+behind) {
		s.isOpen = true
	}
	if s.isOpen && (!s.isMillion || !money.inFront || behind[0] == ' ') {
		return "", money, errScale
	}
	n, err = plainNumber(before, found, behind, s, money, tag)
	return n, money, err
}

// plainNumber returns found, a number between two texts, with a decimal point and without other marks.
func plainNumber(before, found, behind string, s scale, money foundCurrency, tag string) (n string, err error) {
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
		return "", errUndecided
	}
	if i >= 0 {
		whole, fraction = found[:i], found[i+1:]
	}
	if !isGrouped(whole) || strings.Trim(fraction, "0123456789") != "" {
		return "", errNoNumber
	}
	whole = strings.TrimLeft(strings.NewReplacer(".", "", ",", "", "'", "", " ", "").Replace(whole), "0")
	whole = cmp.Or(whole, "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	if len(whole) > 30 || len(fraction) > 31 {
		return "", errNoNumber
	}
	whole, fraction = s.move(whole, fraction)
	return sign + whole + fraction, nil
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
	case money.found:
		return pointOfAmount(last, mark, money, tag)
	case tag == "":
		return 0, false
	case mark == decimalMark(tag):
		return last, true
	}
	return -1, true
}

// bothMarks are the currencies of countries whose shops write the point and the comma for both, and that have no prices
// of three decimal places: "R1,299" in South Africa.
var bothMarks = []string{"BOB", "CRC", "MAD", "ZAR"}

// pointOfAmount is decimalPoint for an amount with one mark and three digits behind it. Most prices have no three
// decimal places, so that the mark stands between groups, unless those who write the language and those who use the
// currency both take it for the decimal point, as in "$3.499" for a gallon. A sign where the language does not put it,
// as in "€1,299" in French, says that the amount is written in another one. Where prices have three decimal places, as
// in "5.000 KWD", both have to agree.
func pointOfAmount(last int, mark string, money foundCurrency, tag string) (at int, decided bool) {
	home, places := homeMark(money.code), writtenDecimals(money.code)
	isHome := home == mark || home == "" && tag != "" && decimalMark(tag) == mark
	switch agreed := tag == "" && isHome || tag != "" && (home == "" || decimalMark(tag) == home); {
	case places == 3 && !agreed:
		return 0, false
	case places == 3 && isHome:
		return last, true
	case places == 3 && tag != "" && groupMark(tag) != mark:
		return 0, false // as in "1.250 DT" in French
	case home != mark || places != 2 || tag != "" && decimalMark(tag) != mark || slices.Contains(bothMarks, money.code):
		return -1, true
	case tag == "" || money.inFront && !signInFront(money.code, tag):
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

// writtenDecimals returns how many decimal places people write in the amounts of a currency: none where its hundredths
// are worth nothing any more, as those of the dinar of Iraq.
func writtenDecimals(code string) int {
	unit, err := cldr.ParseISO(code)
	if err != nil {
		return decimals(code)
	}
	n, _ := cldr.Standard.Rounding(unit)
	return n
}

// decimalMark returns the decimal mark of a language, "." or ",".
func decimalMark(tag string) string {
	// In "1,50 $" it is what stands behind the first digit.
	if _, rest, _ := strings.Cut(sample("1.5", "USD", tag), "1"); strings.HasPrefix(rest, ",") {
		return ","
	}
	return "."
}

// groupMark returns the mark between groups of digits in a language.
func groupMark(tag string) string {
	_, rest, _ := strings.Cut(sample("11111", "USD", tag), "11")
	mark, _, _ := strings.Cut(rest, "1")
	return mark
}

// signInFront reports whether a language puts the sign of a currency before the number.
func signInFront(code, tag string) bool { return !strings.HasPrefix(sample("1.5", code, tag), "1") }

// sample returns an amount of a currency as a language writes it.
func sample(number, code, tag string) string {
	amount, err := currency.NewAmount(number, code)
	if err != nil {
		return ""
	}
	return plainDigits(currency.NewFormatter(currency.NewLocale(tag)).Format(amount))
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
