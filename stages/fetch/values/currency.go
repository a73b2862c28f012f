package values

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"
)

// foundCurrency is a currency beside a number. Its code is empty where several countries write the same sign, such
// as kr, and the language of the page names none of them.
type foundCurrency struct {
	found   bool
	code    string
	sign    string // or code, as the page writes it
	isWord  bool   // and may be another word, such as lei
	inFront bool   // of its number
	isName  bool   // and may be part of the name of an article, such as KD
}

// isWord reports whether a sign in letters, which findSign knows, may be another word: "lei" and "ID", but not "kr",
// "Rs", "zł", "euro" and the sign of the language's own country.
func isWord(sign, tag string) bool {
	n := utf8.RuneCountInString(sign)
	if t, err := language.Parse(tag); err == nil {
		if s, _ := signOf(t); s == sign || n > 1 && sharedCode(sign, t) != "" && !slices.Contains(words, sign) {
			return false
		}
	}
	switch {
	case sign == "kr" || sign == "Kr" || sign == "Rs" || n > 3 || n == 3 && isCode(strings.ToUpper(sign)):
		return false
	case n == len(sign): // ASCII
		return true
	default:
		r, _ := utf8.DecodeRuneInString(sign)
		return n == 1 && !unicode.Is(unicode.Han, r) && !unicode.Is(unicode.Hangul, r)
	}
}

// isCode reports whether s is the code of a currency in use that is no word. "TOP 10" and "ALL 20" are labels.
func isCode(s string) bool { return s != "" && s != "ALL" && s != "TOP" && currency.IsValid(s) }

// currencyToken is a currency in a text.
type currencyToken struct {
	foundCurrency
	from, to int  // in bytes
	isCode   bool // and no sign
	beside   bool // it is no symbol, and counts only directly beside its number
}

// findCurrencies returns the currencies in s, a text without digits.
func findCurrencies(s, tag string) (tokens []currencyToken) {
	for i := 0; i < len(s); {
		end := signEnd(s, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		t := currencyToken{from: i, to: end}
		// "EUR.Then" is a currency before the next sentence, and so is "only.EUR".
		for _, part := range []string{s[i:end], s[i : i+strings.IndexByte(s[i:end]+".", '.')], s[i+strings.LastIndexByte(s[i:end], '.')+1 : end]} {
			if isCode(part) {
				t.foundCurrency, t.isCode = foundCurrency{found: true, code: part, sign: part}, true
			} else {
				t.foundCurrency = findSign(part, tag)
				t.beside = !strings.ContainsFunc(part, func(r rune) bool { return unicode.Is(unicode.Sc, r) })
				t.isWord = t.beside && isWord(part, tag)
				t.isName = (t.isWord || sharedSigns[part] != "") && capitals.MatchString(part)
			}
			if t.found {
				break
			}
		}
		// "US $12" is as good as "US$12".
		if k := len(tokens); t.found && !t.beside && !t.isCode && strings.HasPrefix(s[i:], "$") && i >= 3 && s[i-1] == ' ' {
			from := strings.LastIndexByte(s[:i-1], ' ') + 1
			if code := prefixes['$'][s[from:i-1]]; code != "" && i-1-from >= 2 && (k == 0 || tokens[k-1].to <= from) {
				t.from, t.code = from, code
			}
		}
		if t.found {
			tokens = append(tokens, t)
		}
		i = end
	}
	return tokens
}

// signEnd returns the end of the letters and symbols that begin at from in s, with the points within "د.ك".
func signEnd(s string, from int) int {
	inSign := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Sc, r) || r == 'Ƀ'
	}
	end := from
	for i, r := range s[from:] {
		next, _ := utf8.DecodeRuneInString(s[from+i+utf8.RuneLen(r):])
		switch {
		case r == utf8.RuneError:
			return end
		case inSign(r), end > from && strings.ContainsRune(".'\"״", r) && inSign(next):
			end = from + i + utf8.RuneLen(r)
		default:
			if word := s[from:end]; r == '/' && (word == "S" || word == "B") && !unicode.IsLetter(next) {
				end++
			}
			return end
		}
	}
	return end
}

// nearText is how far from its number a currency may stand, in bytes.
const nearText = 24

var (
	// wordBefore and wordBehind match a currency that is also a word, directly beside a number.
	wordBefore, wordBehind = regexp.MustCompile(`\b(ALL|TOP) *$`), regexp.MustCompile(`^ *(ALL|TOP)\b`)
	capitals               = regexp.MustCompile(`^[A-Z]{1,2}$`)
	digitPattern           = regexp.MustCompile(`[0-9]`)
)

// nearest is a currency near a number, and the bytes between them.
type nearest struct {
	currencyToken
	gap int
}

// currencyBefore returns the currency that stands next before a number.
func currencyBefore(before, tag string) (n nearest) {
	if len(before) > nearText {
		before = strings.ToValidUTF8(before[len(before)-nearText:], "")
	}
	before = before[strings.LastIndexAny(before, "0123456789")+1:]
	for _, t := range findCurrencies(before, tag) {
		if gap := before[t.to:]; !t.beside || isBeside(gap) {
			n = refine(n, nearest{t, len(gap)})
		}
	}
	return n
}

// currencyBehind returns the currency that stands next behind a number and does not belong to the following one.
// taken says that a currency stands before the number, so that "$10 $20" are two prices.
func currencyBehind(behind, tag string, taken bool) (n nearest) {
	behind = behind[len(emptyDecimals.FindString(behind)):]
	if len(behind) > nearText {
		behind = strings.ToValidUTF8(behind[:nearText], "")
	}
	next := -1
	if at := digitPattern.FindStringIndex(behind); at != nil {
		next, behind = at[0], behind[:at[0]]
	}
	tokens := findCurrencies(behind, tag)
	for i := len(tokens) - 1; i >= 0; i-- {
		t := tokens[i]
		if toNext := next - t.to; next >= 0 && (toNext < t.from || toNext == t.from && taken) {
			continue
		}
		if gap := behind[:t.from]; !t.beside || isBeside(gap) {
			n = refine(n, nearest{t, len(gap)})
		}
	}
	return n
}

// isBeside reports whether what stands between a number and a word lets the word be its currency, as in "95,- kr".
func isBeside(gap string) bool {
	return len(gap) <= 6 && !strings.ContainsFunc(gap, func(r rune) bool { return unicode.IsLetter(r) || r == '\n' })
}

// refine returns the nearer currency, which is b, but a code that stands beside its sign, as in "CAD $20".
func refine(a, b nearest) nearest {
	between := a.gap - b.gap - (b.to - b.from)
	if a.isCode && !b.isCode && between <= 2 {
		return nearest{a.currencyToken, b.gap}
	}
	return b
}

// findCurrency returns the currency of a number between two texts: the nearest one, but a code rather than a sign where
// both stand beside the number. "TOP 10" and "ALL 20" are labels; "TOP 10.50" and "20 ALL" are amounts.
func findCurrency(before, number, behind, tag string) foundCurrency {
	a := currencyBefore(before, tag)
	b := currencyBehind(behind, tag, a.found)
	switch {
	case a.found && b.found && a.gap <= 2 && b.gap <= 2 && a.isCode != b.isCode:
		if b.isCode {
			return b.foundCurrency
		}
		a.inFront = true
		return a.foundCurrency
	case a.found && (!b.found || a.gap <= b.gap && (!a.isName || b.beside || b.gap > 1)): // "ID 77 €" is no dinar
		a.inFront = true
		return a.foundCurrency
	case b.found:
		return b.foundCurrency
	}
	if m := wordBehind.FindStringSubmatch(behind); m != nil {
		return foundCurrency{found: true, code: m[1], isWord: true}
	}
	if m := wordBefore.FindStringSubmatch(before); m != nil && strings.ContainsAny(number, ".,' ") {
		return foundCurrency{found: true, code: m[1], isWord: true}
	}
	return foundCurrency{}
}
