package values

import (
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	reader "github.com/vokter/vokter/stages/fetch/readers/html"
)

// split stands where a reader of HTML found two digits in an element of their own behind others, as cents are often
// written.
const split = reader.Split

var (
	// looseDecimals are decimals whose point has blanks around it, as in "119. 95".
	looseDecimals = regexp.MustCompile(`^(?: ([.,]) ?|([.,]) )([0-9]{2,3})(?:[^0-9%]|$)`)
	// signAsPoint is a currency in the place of the decimal point, as in "35€99".
	signAsPoint = regexp.MustCompile(`^( ?)(\p{Sc}|zł|kr|лв)( ?)([0-9]{2})(?:[^\pL\pN.,'%]|$)`)
	// colonDecimals are decimals behind a colon, as in "12:50 kr".
	colonDecimals = regexp.MustCompile(`^:([0-9]{2})(?:[^0-9:]|$)`)
	// blankDecimals are two digits behind a blank, at the end of a text.
	blankDecimals = regexp.MustCompile(`^[ \n]+([0-9]{2})([^0-9]*)$`)
	// minorDecimals are the hundredths of a currency by their name, as in "5 € 50 cents".
	minorDecimals = regexp.MustCompile(`(?i)^ ?([\pL\p{Sc}]*\.?),? ?(?:(?:and|und|et|y|e|i|и) )?([0-9]{1,2}) ?` +
		`(коп(?:еек|ейки|ейка)?|cents?|ct|¢|p|pence|gr|grosz[ey]?|øre|öre|ore|paise|kuruş|ст|bani|centimes?|c[eé]ntimos?|centavos?|centesimi|hal|haléř[eů]?)(?:[^\pL\pN]|$)`)
	// myriads are numbers of ten thousands, thousands and hundreds, and the rest, as in "1万2800" and "3만 5천". part is
	// one of them.
	myriads = regexp.MustCompile(`(^|[^0-9.,])([0-9][0-9,]*[` + characters + `]+(?: ?[0-9][0-9,]*[` + characters + `]*)+)`)
	part    = regexp.MustCompile(`( ?)([0-9][0-9,]*)([` + characters + `]*)`)
)

// joinDecimals adds the decimals in behind to found where something stands between them: blanks around the point, a
// colon or a blank in its place, or a currency, which it returns. "10, 20 or 30 pieces" stays ten: what joins has to
// look like an amount.
func joinDecimals(before, found, behind, tag string) (number, rest string, sign foundCurrency) {
	inFront := currencyBefore(before, tag)
	if m := signAsPoint.FindStringSubmatch(behind); m != nil && !strings.ContainsAny(decimalTail(found), ".,") {
		blankBefore, mark, blankBehind := m[1] != "", m[2], m[3] != ""
		rest := behind[len(m[1])+len(mark)+len(m[3])+2:]
		// "20 $15" are two amounts, and so are "$20$15" and "5€ 10€".
		another := currencyBehind(rest, tag, false)
		joined := (!inFront.found || inFront.isName) && (!another.found || another.gap > 1) && (!blankBefore || blankBehind) && (!blankBehind || endsAmount(rest))
		if money := findSign(mark, tag); joined && decimals(money.code) == 2 {
			return found + "." + m[4], rest, money
		}
	}
	if m := looseDecimals.FindStringSubmatch(behind); m != nil {
		mark := m[1] + m[2]
		rest := behind[strings.Index(behind, m[3])+len(m[3]):]
		next := currencyBehind(rest, tag, inFront.found)
		money := next.found && next.gap <= 2 || inFront.found && inFront.gap <= 2 && endsAmount(rest)
		alone := strings.TrimSpace(before) == "" && strings.TrimSpace(rest) == ""
		if (money || alone) && !strings.Contains(found, mark) {
			return found + mark + m[3], rest, foundCurrency{}
		}
	}
	if strings.ContainsAny(decimalTail(found), ".,") {
		return found, behind, foundCurrency{}
	}
	if m := minorDecimals.FindStringSubmatchIndex(behind); m != nil {
		money := inFront.foundCurrency
		if sign := strings.TrimSuffix(behind[m[2]:m[3]], "."); sign != "" {
			if money = findSign(sign, tag); isCode(sign) {
				money = foundCurrency{found: true, code: sign}
			}
		}
		if money.found && decimals(money.code) == 2 {
			return withDecimals(found, ("0" + behind[m[4]:m[5]])[m[5]-m[4]-1:]), behind[m[7]:], money
		}
	}
	for _, pattern := range []*regexp.Regexp{colonDecimals, blankDecimals} {
		m := pattern.FindStringSubmatchIndex(behind)
		if m == nil {
			continue
		}
		rest := behind[m[3]:]
		if money := besideOf(before, rest, tag); money.found && decimals(money.code) == 2 && (pattern == colonDecimals || (!inFront.isName || money.code == inFront.code) && isBare(before, tag) && isBare(rest, tag)) {
			return withDecimals(found, behind[m[2]:m[3]]), rest, money.foundCurrency
		}
	}
	return found, behind, foundCurrency{}
}

// withDecimals adds two decimals to a number without any, behind the mark that stands not between its groups.
func withDecimals(number, two string) string {
	return number + reader.DecimalMark([]byte(number)) + two
}

// besideOf returns the currency directly before or behind a number.
func besideOf(before, behind, tag string) nearest {
	inFront := currencyBefore(before, tag)
	if next := currencyBehind(behind, tag, inFront.found); next.found && next.gap <= 2 {
		return next
	}
	if inFront.gap > 2 {
		return nearest{}
	}
	return inFront
}

// isBare reports whether s is nothing but blanks or a currency.
func isBare(s, tag string) bool {
	s = strings.TrimSpace(s)
	tokens := findCurrencies(s, tag)
	return s == "" || len(tokens) == 1 && tokens[0].from == 0 && strings.Trim(s[tokens[0].to:], ". ") == ""
}

// splitCents is what a reader of HTML writes for two digits that may be cents. The second split is there if their
// element holds nothing else.
var splitCents = regexp.MustCompile(split + `([0-9]{2})(` + split + `)?`)

// joinSplit puts a decimal mark in the place of each split of s that is one: where a currency with hundredths is
// declared or stands beside the number. Where a currency without any does, the split goes. Where letters follow that
// are no currency, as in "$20" and "24 reviews", both numbers may be whole, unless the cents have an element to
// themselves.
func joinSplit(s, tag, declared string) string {
	var out []byte
	done := 0
	for _, at := range splitCents.FindAllStringSubmatchIndex(s, -1) {
		out = append(out, s[done:at[0]]...)
		before, behind := string(out[max(len(out)-beforeText, 0):]), s[at[1]:]
		start := len(strings.TrimRight(before, "0123456789.,' "))
		money := besideOf(before[:start], behind, tag).foundCurrency
		if declared != "" {
			money = foundCurrency{found: true, code: declared}
		}
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(behind, " "))
		mark := split
		if money.found && (at[4] >= 0 || !unicode.IsLetter(first) || currencyBehind(behind, tag, false).found) {
			switch decimals(money.code) {
			case 0:
				mark = ""
			case 2:
				mark = reader.DecimalMark([]byte(strings.TrimLeft(before[start:], ".,' ")))
			}
		}
		out = append(append(out, mark...), s[at[2]:at[3]]...)
		done = at[1]
	}
	return string(out) + s[done:]
}

// characters are those of characterScales.
const characters = "十百千万萬億亿兆백천만억조"

// joinMyriads writes numbers of ten thousands, thousands and hundreds, and the rest, as one, such as "1万2800" as
// "12800".
func joinMyriads(s string) string {
	if !strings.ContainsAny(s, characters) {
		return s
	}
	return myriads.ReplaceAllStringFunc(s, func(found string) string {
		m := myriads.FindStringSubmatch(found)
		number, n := joinParts(m[2])
		if number == "" {
			return found
		}
		return m[1] + number + m[2][n:]
	})
}

// joinParts returns the number that the parts at the beginning of s make together, and how long they are. It is empty
// if there is one alone: "1万12800" are two numbers.
func joinParts(s string) (number string, length int) {
	sum, section := new(big.Int), new(big.Int) // section is what the next ten thousands multiply
	limit, within := pow10(30), pow10(4)       // each part is less than what the one before counts
	last, count := ' ', 0
	for _, at := range part.FindAllStringSubmatchIndex(s, -1) {
		units := s[at[6]:at[7]]
		// Koreans write a blank between the parts; behind thousands it may begin another number.
		if at[2] < at[3] && !strings.ContainsRune("만억조", last) && (!strings.ContainsRune("천백", last) || units == "") {
			break
		}
		n, ok := new(big.Int).SetString(strings.ReplaceAll(s[at[4]:at[5]], ",", ""), 10)
		if !ok || n.Cmp(within) >= 0 && (units == "" || count > 0) {
			break
		}
		value, next, unit := n, within, pow10(0)
		isMyriad := false
		for _, last = range units {
			unit = pow10(characterScales[last])
			if next = unit; characterScales[last] >= 4 {
				value.Add(value, section)
				section.SetInt64(0)
				isMyriad, next = true, pow10(4)
			}
			value.Mul(value, unit)
		}
		if isMyriad && value.Cmp(limit) >= 0 {
			break
		}
		if within = next; isMyriad {
			sum.Add(sum, value)
			limit = unit
		} else {
			section.Add(section, value)
		}
		count, length = count+1, at[1]
	}
	if count < 2 {
		return "", 0
	}
	return sum.Add(sum, section).String(), length
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
