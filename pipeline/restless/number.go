package restless

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// number is a number in a block: the bytes [start, end) of it. A date with its time, and a duration
// such as "12 days 3 hours", are one number.
type number struct {
	start, end int
	kind       byte
	// age is how long ago something was, if the number says that, and unit its smallest unit.
	age, unit time.Duration
}

// Kinds of a number: shapes tell them apart.
const (
	kindPlain = '#'
	kindTime  = '@' // a date, a time of day or a duration
	kindMoney = '$' // it is never restless
)

// piece is a word, or a character that is neither a word nor white space.
type piece struct {
	start, end int
	kind       pieceKind
}

type pieceKind uint8

const (
	sign pieceKind = iota
	letters
	digits // a word with a digit
)

// appendPieces appends the pieces of s.
func appendPieces(ps []piece, s string) []piece {
	for i := 0; i < len(s); {
		c := s[i]
		if c == ' ' || c < utf8.RuneSelf && !isWordByte(c) {
			if c > ' ' {
				ps = append(ps, piece{i, i + 1, sign})
			}
			i++
			continue
		}
		start, kind := i, letters
		for i < len(s) {
			if c := s[i]; c < utf8.RuneSelf {
				if !isWordByte(c) {
					break
				}
				if isDigit(c) {
					kind = digits
				}
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			if unicode.IsNumber(r) {
				kind = digits
			} else if !unicode.IsLetter(r) && !unicode.IsMark(r) {
				break
			}
			i += n
		}
		if i > start {
			ps = append(ps, piece{start, i, kind})
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsSpace(r) {
			ps = append(ps, piece{i, i + n, sign})
		}
		i += n
	}
	return ps
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordByte(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

// reader finds the numbers among the pieces of a block.
type reader struct {
	s  string
	ps []piece
}

func (r *reader) text(i int) string {
	if i < 0 || i >= len(r.ps) {
		return ""
	}
	return r.s[r.ps[i].start:r.ps[i].end]
}

func (r *reader) is(i int, kind pieceKind) bool {
	return i >= 0 && i < len(r.ps) && r.ps[i].kind == kind
}

// touches reports whether nothing stands between the pieces i and i+1.
func (r *reader) touches(i int) bool {
	return i >= 0 && i+1 < len(r.ps) && r.ps[i].end == r.ps[i+1].start
}

// next returns the number that begins with piece i, and the piece behind it; ok is false if none does.
func (r *reader) next(i int) (n number, end int, ok bool) {
	if n, end, ok := r.timeAt(i); ok {
		return r.finish(i, end, n), end, true
	}
	first := i
	if r.is(i, sign) && strings.Contains("+-−–", r.text(i)) && r.touches(i) && (i == 0 || !r.touches(i-1)) {
		i++ // the sign of the number
	}
	if !r.is(i, digits) {
		return number{}, 0, false
	}
	end = r.chain(i)
	return r.finish(first, end, number{kind: kindPlain}), end, true
}

// finish completes n, which has the pieces from to end.
func (r *reader) finish(from, end int, n number) number {
	n.start, n.end = r.ps[from].start, r.ps[end-1].end
	if r.isMoney(from, end, n) {
		n.kind, n.age = kindMoney, 0
	}
	return n
}

// chain returns the piece behind the number that begins with the word i: words with digits that
// signs join without white space, as in "2026-11-02", "1,299.00" and "d314-0a", or groups of
// thousands with a space between them.
func (r *reader) chain(i int) int {
	end := i + 1
	for r.is(end, sign) && r.touches(end-1) && r.touches(end) && strings.Contains("-/:.,'’_", r.text(end)) &&
		(r.is(end+1, digits) || isHex(r.text(end+1))) {
		end += 2
	}
	if end == i+1 && isDecimal(r.text(i)) && len(r.text(i)) <= 3 {
		for r.is(end, digits) && isDecimal(r.text(end)) && len(r.text(end)) == 3 && isThousandsGap(r.s[r.ps[end-1].end:r.ps[end].start]) {
			end++
		}
		if r.is(end, sign) && strings.Contains(".,", r.text(end)) && r.touches(end-1) && r.touches(end) && r.is(end+1, digits) {
			end += 2
		}
	}
	return end
}

func isThousandsGap(s string) bool {
	return s == " " || s == "\u00a0" || s == "\u202f" || s == "\u2009"
}

// isDecimal reports whether s has digits only.
func isDecimal(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// isHex reports whether s can be a part of an ID that has no digit by chance.
func isHex(s string) bool {
	return len(s) >= 4 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// isMoney reports whether the number of the pieces from to end is an amount of money: a sign or a code
// of a currency stands beside it, or it has two decimal places and no unit. The second may be no
// money, but silence about a price would be worse.
func (r *reader) isMoney(from, end int, n number) bool {
	if isCurrency(r.text(end)) {
		return true
	}
	// In "12 EUR 5 sold" the currency belongs to the number before it.
	if isCurrency(r.text(from-1)) && !r.is(from-2, digits) {
		return true
	}
	if r.touches(from-1) && isCurrency(r.text(from-1)) {
		return true
	}
	s := r.s[n.start:n.end]
	point := len(s) - 3
	return n.kind == kindPlain && point > 0 && (s[point] == '.' || s[point] == ',') && isDecimal(s[point+1:]) && isDigit(s[point-1]) &&
		strings.Trim(s[:point], "+-−–0123456789.,'’ \u00a0\u202f\u2009") == "" && r.text(end) != "%" && !r.is(end, letters)
}

// isCurrency reports whether s is a sign or a code of a currency.
func isCurrency(s string) bool {
	switch len(s) {
	case 0:
		return false
	case 1:
		return s[0] == '$'
	}
	if c, _ := utf8.DecodeRuneInString(s); unicode.Is(unicode.Sc, c) {
		return true
	}
	return currencies.of(s) != 0
}

// currencies are codes and names of currencies, in small letters.
var currencies = lexiconOf(map[uint8]string{1: `usd eur gbp chf jpy cny rmb sek nok dkk pln czk huf ron bgn try rub uah inr brl mxn ars clp cop aud cad nzd zar
	sgd hkd krw twd thb idr myr php vnd ils aed sar egp ngn kes btc eth kr zł kč ft lei fr rs円 円 元 원 euro euros dollar dollars pound pounds
	franken rupees yen cent cents ct`})
