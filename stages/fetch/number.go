package fetch

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
)

// digitZeros are the zeros of the digits that are read besides ASCII: each is followed by 1 to 9.
var digitZeros = []rune{'٠', '۰', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '๐', '໐', '၀', '០', '０'}

// markReplacer replaces the marks in a number, so that it has only '.' and ',' as a decimal point, an
// apostrophe between groups of three and ' ' as a blank.
var markReplacer = strings.NewReplacer("٫", ".", "٬", "'", "’", "'", "ʼ", "'", "‘", "'", "\u00a0", " ", "\u202f", " ", "\u2009", " ", "−", "-", "．", ".", "，", ",")

// plainDigits returns s with ASCII digits and marks.
func plainDigits(s string) string {
	return markReplacer.Replace(strings.Map(func(r rune) rune {
		if r < 128 {
			return r
		}
		for _, zero := range digitZeros {
			if r >= zero && r <= zero+9 {
				return '0' + r - zero
			}
		}
		return r
	}, s))
}

var numberPattern = regexp.MustCompile(`-?(?:[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?(?:[^0-9]|$)|[0-9]+(?:[.,'][0-9]+)*)`)

// barePointPattern is a decimal point without a digit before it.
var barePointPattern = regexp.MustCompile(`(^|[^\pL\pN.,'])([.,][0-9])`)

// findNumber finds the first number in s and returns it with a decimal point and without marks between its
// digits, such as "1299.00". unit is the currency beside it, if there is one. tag is the language of the
// page, which may decide whether "1.299" is a little more than one. ok is false if there is no number, or
// one that cannot be read.
func findNumber(s, tag string) (n, unit string, ok bool) {
	s = barePointPattern.ReplaceAllString(plainDigits(s), "${1}0$2")
	at := numberPattern.FindStringIndex(s)
	if at == nil {
		return "", "", false
	}
	found := strings.TrimRightFunc(s[at[0]:at[1]], func(r rune) bool { return r < '0' || r > '9' })
	unit = findCurrency(s[:at[0]], found, s[at[0]+len(found):])
	sign := ""
	if rest, negative := strings.CutPrefix(found, "-"); negative {
		found = rest
		// "10-20" is a range, and "A-1" a name.
		if before := []rune(s[:at[0]]); len(before) == 0 || !unicode.IsLetter(before[len(before)-1]) && !unicode.IsDigit(before[len(before)-1]) {
			sign = "-"
		}
	}
	whole, fraction := found, ""
	if i := decimalPoint(found, unit, tag); i >= 0 {
		whole, fraction = found[:i], found[i+1:]
	}
	if !isGrouped(whole) {
		return "", "", false
	}
	whole = strings.TrimLeft(strings.NewReplacer(".", "", ",", "", "'", "", " ", "").Replace(whole), "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	if len(whole) > 30 || len(fraction) > 31 {
		return "", "", false
	}
	return sign + whole + fraction, unit, true
}

// decimalPoint returns where the decimal point of s is, or -1 if it has none.
func decimalPoint(s, unit, tag string) int {
	last := strings.LastIndexAny(s, ".,")
	if last < 0 {
		return -1
	}
	mark := s[last : last+1]
	digits := len(s) - last - 1
	switch {
	case strings.Count(s, mark) > 1:
		return -1 // it stands between groups
	case strings.ContainsAny(s[:last], ".,' "), digits != 3, last > 3, s[:last] == "0":
		return last
	case unit != "":
		// Prices have two decimal places, but for a few currencies.
		if threeDecimalCurrencies[unit] && mark == decimalMark(tag) {
			return last
		}
		return -1
	case tag != "" && mark == decimalMark(tag):
		return last
	}
	return -1
}

// threeDecimalCurrencies are the currencies with three decimal places.
var threeDecimalCurrencies = map[string]bool{"BHD": true, "IQD": true, "JOD": true, "KWD": true, "LYD": true, "OMR": true, "TND": true}

// pointLanguages are the languages that write a decimal point. Others write a comma.
var pointLanguages = map[string]bool{
	"en": true, "zh": true, "ja": true, "ko": true, "he": true, "hi": true, "th": true, "ta": true, "te": true, "bn": true, "mr": true, "gu": true,
	"kn": true, "ml": true, "pa": true, "ur": true, "ms": true, "ga": true, "cy": true, "sw": true, "ar": true, "fa": true,
}

// decimalMark returns the decimal mark of a language.
func decimalMark(tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return "."
	}
	base, _ := t.Base()
	region, sure := t.Region()
	switch {
	case sure == language.Exact && (region.String() == "CH" || region.String() == "LI" || region.String() == "MX"):
		return "."
	case pointLanguages[base.String()]:
		return "."
	}
	return ","
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

// currencySigns are the signs of currencies. Longer ones come first.
var currencySigns = []struct{ sign, code string }{
	{"US$", "USD"}, {"CA$", "CAD"}, {"C$", "CAD"}, {"AU$", "AUD"}, {"A$", "AUD"}, {"NZ$", "NZD"}, {"HK$", "HKD"}, {"S$", "SGD"}, {"R$", "BRL"}, {"MX$", "MXN"},
	{"€", "EUR"}, {"£", "GBP"}, {"¥", "JPY"}, {"円", "JPY"}, {"元", "CNY"}, {"₹", "INR"}, {"₽", "RUB"}, {"₩", "KRW"}, {"₺", "TRY"}, {"₴", "UAH"}, {"₪", "ILS"},
	{"₫", "VND"}, {"฿", "THB"}, {"zł", "PLN"}, {"Kč", "CZK"}, {"руб", "RUB"}, {"$", "USD"},
}

// newCurrencies are the codes of currencies in use that golang.org/x/text/currency does not have yet: ISO 4217, list one
// of current currencies (SIX, https://www.six-group.com/en/products-services/financial-information/data-standards.html).
// They are of Mauritania (2018), Sierra Leone (2022), Venezuela (2021 and 2018), Curaçao and Sint Maarten (2025),
// and Zimbabwe (2024).
var newCurrencies = []string{"MRU", "SLE", "VED", "VES", "XCG", "ZWG"}

// currencyCodes are the codes of the currencies in use, without those that are words. Others stand for countries and
// labels more often, such as "BEL 2" and "BAN 3".
var currencyCodes = sync.OnceValue(func() map[string]bool {
	codes := make(map[string]bool)
	for u := currency.Query(); u.Next(); {
		codes[u.Unit().String()] = true
	}
	for _, c := range newCurrencies {
		codes[c] = true
	}
	delete(codes, "ALL")
	delete(codes, "TOP")
	return codes
})

var (
	codePattern = regexp.MustCompile(`\b[A-Z]{3}\b`)
	// wordBefore and wordBehind match a currency that is also a word, directly beside a number.
	wordBefore, wordBehind = regexp.MustCompile(`\b(ALL|TOP) *$`), regexp.MustCompile(`^ *(ALL|TOP)\b`)
)

// findCurrency returns the code of the currency in the text before or behind a number, or "". "TOP 10" and "ALL 20"
// are labels; "TOP 10.50" and "20 ALL" are amounts.
func findCurrency(before, number, behind string) string {
	if len(before) > 20 {
		before = before[len(before)-20:]
	}
	if len(behind) > 20 {
		behind = behind[:20]
	}
	for _, near := range []string{behind, before} {
		for _, c := range codePattern.FindAllString(near, -1) {
			if currencyCodes()[c] {
				return c
			}
		}
	}
	for _, near := range []string{before, behind} {
		for _, s := range currencySigns {
			if strings.Contains(near, s.sign) {
				return s.code
			}
		}
	}
	if m := wordBehind.FindStringSubmatch(behind); m != nil {
		return m[1]
	}
	if m := wordBefore.FindStringSubmatch(before); m != nil && strings.ContainsAny(number, ".,' ") {
		return m[1]
	}
	return ""
}
