package pipeline

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Values of Value.Offer.
const (
	OfferPrice        = "price"
	OfferCurrency     = "currency"
	OfferAvailability = "availability"
)

// Value makes a document a single value: its text is a number such as "1299.00", a number with its
// unit such as "95.00 EUR", or a word such as "InStock". The zero Value is the first number in the
// text that View selects.
type Value struct {
	// Offer is OfferPrice with its currency, OfferCurrency or OfferAvailability. Empty means that the text is read.
	Offer string `json:"offer,omitempty"`
	// Pattern has one group. The value is what the group matches first. Empty means the whole text.
	Pattern string `json:"pattern,omitempty"`
	// Word says that the value is text of at most MaxValueLength characters and not a number.
	Word bool `json:"word,omitempty"`
	// Language is that of the subscription; WithDefaults sets it. Empty means that of the page.
	Language string `json:"language,omitempty" yaml:"-"`
}

// Text reports whether the value is a word and not a number.
func (v Value) Text() bool { return v.Word || v.Offer == OfferCurrency || v.Offer == OfferAvailability }

// Name returns what the value is, for people.
func (v Value) Name() string {
	switch v.Offer {
	case OfferPrice:
		return "Price"
	case OfferCurrency:
		return "Currency"
	case OfferAvailability:
		return "Availability"
	}
	return "Value"
}

// Group compiles the pattern. It returns nil if there is none.
func (v Value) Group() (*regexp.Regexp, error) {
	if v.Pattern == "" {
		return nil, nil
	}
	re, err := compilePattern(v.Pattern)
	if err == nil && re.NumSubexp() != 1 {
		err = fmt.Errorf("%q has %d groups; put what is the value into one pair of parentheses, and write (?:...) for others", v.Pattern, re.NumSubexp())
	}
	return re, err
}

// Amount is a decimal number as text, such as "99.90". ChangesBy may end with a percent sign. In JSON
// it may be a number.
type Amount string

// UnmarshalJSON reads a number or a string.
func (a *Amount) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(a))
	}
	if string(b) != "null" {
		*a = Amount(b)
	}
	return nil
}

var amountPattern = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)

// Number returns the number of a, and whether it is one.
func (a Amount) Number() (*big.Rat, bool) {
	if !amountPattern.MatchString(string(a)) {
		return nil, false
	}
	return new(big.Rat).SetString(string(a))
}

// Condition says which changes of a value are reported. A change is reported if one of the fields that
// are set holds for it. Without any, every change is.
type Condition struct {
	// Below is met when the value was not below it and now is. Above is the opposite.
	Below     Amount `json:"below,omitempty"`
	Above     Amount `json:"above,omitempty"`
	ChangesBy Amount `json:"changes_by,omitempty"`
	Becomes   string `json:"becomes,omitempty"` // case does not count
}

// unconditional reports whether c has no condition, so that every change is reported.
func (c Condition) unconditional() bool { return c == Condition{} }

// ValueChange is the change of a value.
type ValueChange struct {
	// Name is what the value is: Price, Availability, Currency or Value.
	Name string `json:"name"`
	// Old and New are decimal numbers or words. Unit is that of New, such as EUR, if it is known.
	Old  string `json:"old"`
	New  string `json:"new"`
	Unit string `json:"unit,omitempty"`
	// Condition is the condition that was met, such as "below 100"; empty if there is none.
	Condition string `json:"condition,omitempty"`
}

// String returns c for people, such as "Price 120.00 -> 95.00 EUR (below 100)".
func (c ValueChange) String() string {
	s := c.Name + " " + c.Old + " -> " + c.New
	if c.Unit != "" {
		s += " " + c.Unit
	}
	if c.Condition != "" {
		s += " (" + c.Condition + ")"
	}
	return s
}

// ValueChange compares two texts of a document whose View has a Value. ok is false if nothing is to
// be reported of the change.
func (s Subscription) ValueChange(before, after string) (change ValueChange, ok bool) {
	c := ValueChange{Name: s.Value.Name(), Old: strings.TrimSpace(before), New: strings.TrimSpace(after)}
	if s.Value.Text() {
		c.Condition, ok = s.matchWords(c.Old, c.New)
		return c, ok
	}
	oldUnit := ""
	c.Old, oldUnit, _ = strings.Cut(c.Old, " ")
	c.New, c.Unit, _ = strings.Cut(c.New, " ")
	x, good := Amount(c.Old).Number()
	y, good2 := Amount(c.New).Number()
	if !good || !good2 {
		return c, false
	}
	if c.Condition, ok = s.matchNumbers(x, y); s.unconditional() && oldUnit != c.Unit {
		ok = true
	}
	if oldUnit != c.Unit && oldUnit != "" {
		c.Old += " " + oldUnit
	}
	return c, ok
}

// Met returns the condition that value, the text of a document whose View has a Value, meets as it stands, such as
// "below 100". It is reported when the value meets it again. Met returns "" if there is none.
func (s Subscription) Met(value string) string {
	value = strings.TrimSpace(value)
	if s.Value.Text() {
		met, _ := s.matchWords("", value)
		return met
	}
	number, _, _ := strings.Cut(value, " ")
	is, ok := Amount(number).Number()
	if n, given := s.Below.Number(); ok && given && is.Cmp(n) < 0 {
		return "below " + string(s.Below)
	}
	if n, given := s.Above.Number(); ok && given && is.Cmp(n) > 0 {
		return "above " + string(s.Above)
	}
	return ""
}

func (c Condition) matchWords(before, after string) (met string, ok bool) {
	switch {
	case c.Becomes == "":
		return "", before != after
	case !strings.EqualFold(before, c.Becomes) && strings.EqualFold(after, c.Becomes):
		return "becomes " + c.Becomes, true
	}
	return "", false
}

func (c Condition) matchNumbers(before, after *big.Rat) (met string, ok bool) {
	if c.unconditional() {
		return "", before.Cmp(after) != 0
	}
	if n, given := c.Below.Number(); given && before.Cmp(n) >= 0 && after.Cmp(n) < 0 {
		return "below " + string(c.Below), true
	}
	if n, given := c.Above.Number(); given && before.Cmp(n) <= 0 && after.Cmp(n) > 0 {
		return "above " + string(c.Above), true
	}
	text, percent := strings.CutSuffix(string(c.ChangesBy), "%")
	n, given := Amount(text).Number()
	if !given || before.Cmp(after) == 0 {
		return "", false
	}
	if percent {
		n = new(big.Rat).Mul(new(big.Rat).Abs(before), n.Mul(n, big.NewRat(1, 100)))
	}
	difference := new(big.Rat).Sub(after, before)
	return "changed by " + string(c.ChangesBy) + " or more", difference.Abs(difference).Cmp(n) >= 0
}

// checkValue reports what is wrong with the value of s and its condition.
func (s Subscription) checkValue(bad func(field, format string, args ...any)) {
	for _, f := range []struct {
		name string
		a    Amount
	}{{"below", s.Below}, {"above", s.Above}, {"changes_by", s.ChangesBy}} {
		text := string(f.a)
		if f.name == "changes_by" {
			text = strings.TrimSuffix(text, "%")
		}
		n, ok := Amount(text).Number()
		switch {
		case f.a == "":
		case !ok && f.name == "changes_by":
			bad(f.name, "%.50q is neither a number such as 10 nor a share such as 5%%", f.a)
		case !ok:
			bad(f.name, "%.50q is not a number; write one such as 100 or 99.90", f.a)
		case f.name == "changes_by" && n.Sign() <= 0:
			bad(f.name, "must be more than 0")
		case s.Value == nil:
			bad(f.name, "it is a condition on a value; add value, such as value: {offer: price} or value: {select: .price}")
		case s.Value.Text():
			bad(f.name, "it compares numbers, but the value is a word; use becomes")
		}
	}
	if n := utf8.RuneCountInString(s.Becomes); n > MaxValueLength {
		bad("becomes", "a word of %d characters is too long; at most %d", n, MaxValueLength)
	}
	if s.Value == nil {
		if s.Becomes != "" {
			bad("becomes", "it is a condition on a value; add value, such as value: {offer: availability} or value: {select: .stock, word: true}")
		}
		return
	}
	if s.Becomes != "" && !s.Value.Text() {
		bad("becomes", "it compares words, but the value is a number; add word: true to value, or use below, above or changes_by")
	}
	v := *s.Value
	if _, err := v.Group(); err != nil {
		bad("value.pattern", "%v", err)
	}
	switch {
	case v.Offer != "" && (v.Pattern != "" || v.Word || len(s.Select)+len(s.Remove) > 0):
		bad("value.offer", "it is read from what the page declares, so that select, remove, pattern and word have no meaning; remove them, or offer")
	case v.Offer == "" && v.Pattern == "" && len(s.Select) == 0:
		bad("value", "it does not say where the value is; write select, pattern or offer")
	}
	if len(s.Keywords) > 0 {
		bad("keywords", "a subscription with value watches this value alone; remove keywords, and watch for them with a second subscription to the page")
	}
	if s.Items || s.Sitemap {
		bad("value", "feeds with items and sitemaps have no value; remove value, or items and sitemap")
	}
	if s.MinChange != (MinChange{}) {
		bad("min_change", "it counts words; use changes_by for a value")
	}
	if len(s.Events) == 1 {
		bad("events", "a change of a value has both events; remove events")
	}
}

// MaxValueLength is the largest length of a value that is a word, in characters.
const MaxValueLength = 200

// IsNumber reports whether s is a decimal number as an Amount has it.
func IsNumber(s string) bool { return amountPattern.MatchString(s) }
