package values

import (
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// rangePattern is what stands between the two numbers of a range, the sign of a currency before the second, and that
// number.
var rangePattern = regexp.MustCompile(`^( ?(?:[-–—~〜～]|to|bis|à|до|tot|till?|al)( ?))(\p{Sc}|[A-Z][A-Za-z]{0,2}\p{Sc}?|kr\.?)? ?` +
	`([0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,'][0-9]+)*)`)

// numberRange is what stands behind the first number of a range, such as "1-2 Mio. €". What stands behind its second
// number, a currency or a scale, is that of both: the first is read as if it stood beside that.
type numberRange struct {
	found   bool
	isTitle bool          // a dash between blanks separates them, as in "Phone 12 - $700"
	money   foundCurrency // before the second number
	second  string
	behind  string // the second number
	rest    string // what the first number is read with: what stands behind the second, but its own scale
}

// findRange returns the range whose first number stands before behind. "2024-11-28" is none.
func findRange(behind, tag string) numberRange {
	own := findScale(behind, tag) // that of "1 Mio. - 2 Mio. €"
	m := rangePattern.FindStringSubmatch(own.rest)
	if m == nil {
		return numberRange{rest: behind}
	}
	r := numberRange{found: true, second: m[4], behind: own.rest[len(m[0]):]}
	if r.rest = r.behind; own.places != 0 {
		r.rest = strings.TrimSuffix(behind, own.rest) + findScale(r.behind, tag).rest
	}
	r.isTitle = m[2] != "" && strings.HasPrefix(m[1], " ") && strings.ContainsAny(m[1], "-–—")
	if m[3] != "" {
		if tokens := findCurrencies(m[3], tag); len(tokens) == 1 && !tokens[0].isName {
			r.money = tokens[0].foundCurrency
			r.money.inFront = true
		}
	}
	if next := strings.TrimLeft(r.behind, "-/."); m[3] != "" && !r.money.found || next != r.behind && strings.IndexAny(next, "0123456789") == 0 {
		return numberRange{rest: behind}
	}
	return r
}

// checkRange reads f, the first number of r, once more without r if r is none, and notes where it cannot be told. found
// stands between before and behind, and its currency is known, or else beside it.
func (f *foundNumber) checkRange(r numberRange, before, found, behind, tag string, known foundCurrency) {
	ownMoney := known.found || currencyBefore(before, tag).found
	shared := findScale(r.rest, tag)
	if !ownMoney && r.money.found && !f.money.found {
		f.number, f.money, f.err = readAmount(before, found, r.rest, tag, r.money)
	}
	if f.err != nil || !f.money.found && shared.places == 0 {
		return
	}
	second, _, err := readAmount("", r.second, r.behind, tag, f.money)
	a, okA := pipeline.Amount(f.number).Number()
	b, okB := pipeline.Amount(second).Number()
	if err != nil || !okA || !okB {
		return
	}
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, " "))
	isMuchLess := func(times int64) bool { return new(big.Rat).Mul(a, big.NewRat(times, 1)).Cmp(b) <= 0 }
	switch {
	case r.rest == r.behind && shared.places != 0 && (a.Cmp(b) > 0 || ownMoney && (shared.places < 0 || r.money.found)):
		f.err = errScale // "500-1k €" and "$1 - $2 million"
	case a.Cmp(b) > 0:
		f.number, f.money, f.err = readAmount(before, found, behind, tag, known)
	case !ownMoney && r.isTitle && (r.money.found || unicode.IsLetter(last) && isMuchLess(10)):
		f.err = errScale // "Phone 12 - $700"
	case oneMark.MatchString(found) && isMuchLess(100):
		f.err = errUndecided // "1,299-1,399.50 €"
	}
}
