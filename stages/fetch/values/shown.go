package values

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/vokter/vokter/pipeline"
	reader "github.com/vokter/vokter/stages/fetch/readers/html"
)

// shownPage is a page whose visible text says how its prices are written.
type shownPage struct {
	ctx  context.Context
	raw  pipeline.Raw
	tag  string  // the language
	text *string // nil until it is asked for
}

// oneMark matches a number with one mark and three digits behind it.
var oneMark = regexp.MustCompile(`(?:^|[^0-9.,'])([1-9][0-9]{0,2})([.,])([0-9]{3})(?:[^0-9.,']|$)`)

var errUnshown = errors.New("the price of the offer (schema.org) may be a thousand times as large: its mark may stand between groups of digits, " +
	"and no amount that the page shows says whether it does; read the price with select")

// amountOf reads a price that an offer declares, with its currency or "". isWritten says that people see it. A program
// writes a decimal point, as schema.org asks for, but many write what people see: where the point may stand between
// groups, and where the comma may be a decimal one, the same digits in the text of the page decide.
func (p *shownPage) amountOf(text string, isWritten bool, code string) (n, unit string, err error) {
	byProgram := !isWritten && pipeline.IsNumber(text)
	if byProgram && (!oneMark.MatchString(text) || writtenDecimals(code) == 3) {
		return text, code, nil
	}
	n, unit, err = findNumber(text, p.tag, code)
	m := oneMark.FindStringSubmatch(plainDigits(text))
	if isWritten || m == nil || err != nil && !errors.Is(err, errUndecided) {
		return n, unit, err
	}
	if shown, shownUnit, ok := p.find(m[1]+m[3], m[1]+"."+m[3], m[2], cmp.Or(unit, code)); ok {
		return shown, shownUnit, nil
	}
	// A point is certain where the language and the currency have it, and a mark between groups where people write one.
	if isDecimal := strings.Contains(n, "."); err == nil && (isDecimal && m[2] == "." || !isDecimal && !byProgram) {
		return n, unit, nil
	}
	return "", "", errUnshown
}

// find looks for a price in the text of the page that has the same digits as grouped, a whole number, and decimal, one
// with three decimal places. It returns the one that the page shows, with its currency. ok is false if it shows neither
// or both. Amounts with a currency count before those without. Where it is not certain what the page shows, but its
// mark is not the one of the price, a program has written the price anew: with a decimal point, or a comma between
// groups.
func (p *shownPage) find(grouped, decimal, mark, code string) (n, unit string, ok bool) {
	if p.text == nil {
		t, _ := reader.New().Read(p.ctx, p.raw, pipeline.View{Remove: []pipeline.Selector{{CSS: StruckOut}}, Value: &pipeline.Value{}})
		content := prepared(t.Content, p.tag, code)
		p.text = &content
	}
	type sight struct{ grouped, decimal bool }
	var amounts, numbers sight
	units := make(map[string]bool)
	note := func(s *sight, n string) {
		s.grouped = s.grouped || sameAmount(n, grouped)
		s.decimal = s.decimal || sameAmount(n, decimal)
	}
	for _, at := range numberPattern.FindAllStringIndex(*p.text, -1) {
		digits := strings.Map(onlyDigits, (*p.text)[at[0]:at[1]])
		if rest, same := strings.CutPrefix(digits, grouped); !same || strings.Trim(rest, "0") != "" {
			continue
		}
		f := readNumber(*p.text, at[0], p.tag, foundCurrency{})
		switch {
		case f.money.found && (code == "" || f.money.code == "" || f.money.code == code):
			if f.err == nil {
				note(&amounts, f.number)
			} else if errors.Is(f.err, errUndecided) && !strings.Contains((*p.text)[at[0]:at[1]], mark) {
				note(&amounts, map[string]string{".": decimal, ",": grouped}[mark])
			}
			units[f.money.code] = true
		case !f.money.found && len(digits) < len(strings.TrimSpace((*p.text)[at[0]:at[1]])): // a plain number may be that of an article
			if f = readNumber(*p.text, at[0], p.tag, declaredCurrency(code)); f.err == nil {
				note(&numbers, f.number)
			}
		}
	}
	seen := amounts
	if seen == (sight{}) {
		seen = numbers
	}
	if code == "" && len(units) == 1 {
		for code = range units {
		}
	}
	switch seen {
	case sight{grouped: true}:
		return grouped, code, true
	case sight{decimal: true}:
		return decimal, code, true
	}
	return "", "", false
}

func onlyDigits(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}

func sameAmount(a, b string) bool {
	x, ok := pipeline.Amount(a).Number()
	y, ok2 := pipeline.Amount(b).Number()
	return ok && ok2 && x.Cmp(y) == 0
}
