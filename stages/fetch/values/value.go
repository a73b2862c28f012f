// Package values reads the one value of a document: a number or word in its text, or what a shop page declares as its
// offer.
package values

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// Extract returns t, the text that the view of a document selects of raw, with the value in it as its content. byProgram
// says that its numbers have a decimal point in any language, as those of JSON.
func Extract(ctx context.Context, v pipeline.Value, raw pipeline.Raw, t pipeline.Text, byProgram bool) (pipeline.Text, error) {
	content, unit := strings.TrimSpace(t.Content), ""
	tag := cmp.Or(v.Language, t.Language)
	if v.Offer != "" {
		found, err := findOffer(ctx, raw, tag)
		if err != nil {
			return t, err
		}
		switch v.Offer {
		case pipeline.OfferPrice:
			if content, unit, byProgram = found.price, found.currency, !found.written; content != "" && v.Pattern == "" {
				if found.err != nil {
					return t, notNumber(found.err, content)
				}
				content, byProgram = found.number, true
			}
		case pipeline.OfferCurrency:
			content = found.currency
		case pipeline.OfferAvailability:
			content = found.availability
		}
		if content == "" {
			return t, noValueError("the page declares an offer (schema.org) without " + v.Offer)
		}
	}
	pattern, err := v.Group()
	if err != nil {
		return t, err
	}
	if pattern != nil {
		content = joinSplit(content, tag, unit)
		at := pattern.FindStringSubmatchIndex(content)
		if at == nil || at[2] < 0 {
			return t, noValueError("the pattern of the value matches nothing")
		}
		if !v.Text() && (strings.HasSuffix(content[:at[2]], split) || strings.HasPrefix(content[at[3]:], split)) {
			return t, notNumber(errSplit, content)
		}
		content = content[at[2]:at[3]]
	}
	if v.Text() {
		word := strings.Join(strings.Fields(strings.Map(dropUnprintable, content)), " ")
		if n := utf8.RuneCountInString(word); n == 0 || n > pipeline.MaxValueLength {
			return t, noValueError("the value is empty or longer than 200 characters; select less of the page")
		}
		t.Content, t.Keys = word+"\n", nil
		return t, nil
	}
	n := content
	if !byProgram || !pipeline.IsNumber(content) {
		f := chooseNumber(content, tag, unit)
		if f.err != nil {
			return t, notNumber(f.err, content)
		}
		if n, unit = f.number, f.money.code; f.money.found && unit == "" {
			t.Passed = append(t.Passed, noCurrency(f.money.sign, tag))
		}
	}
	t.Content, t.Keys = strings.TrimSpace(n+" "+unit)+"\n", nil
	return t, nil
}

// noCurrency says why a number has no unit though it has the sign of a currency.
func noCurrency(sign, tag string) string {
	s := fmt.Sprintf("the currency of the value is not known: %q is the sign of several", sign)
	if sharedSigns[sign] == "" {
		s = fmt.Sprintf("the currency of the value is not known: nobody knows whose %q is", sign)
	} else if tag == "" {
		s += ", and the page has no language; give the subscription one with a country, such as en-IN"
	} else {
		s += fmt.Sprintf(", and the language %s names none; give the subscription one with a country, such as en-IN", tag)
	}
	return s
}

// notNumber is the error of a value that is not a number, or not a certain one.
func notNumber(err error, content string) error {
	content = strings.ReplaceAll(content, split, "|")
	return noValueError(err.Error() + ": " + blocks.Truncate(strings.Join(strings.Fields(content), " "), 60))
}

// StruckOut selects what HTML strikes out.
const StruckOut = "del, s, strike, [style*=line-through]"

// struckPattern is the beginning of an element of HTML whose text is struck out, or its style.
var struckPattern = regexp.MustCompile(`(?i)<(?:del|s|strike)[\s>]|line-through`)

// StrikesOut reports whether raw is HTML in which text is struck out.
func StrikesOut(raw pipeline.Raw) bool { return isHTML(raw) && struckPattern.Match(raw.Body) }

func isHTML(raw pipeline.Raw) bool {
	mediaType := raw.MediaType()
	return mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// dropUnprintable drops the characters that print nothing.
func dropUnprintable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsSpace(r) {
		return r
	}
	return -1
}

// noValueError is the error of a page on which a value is not found.
func noValueError(reason string) error {
	return &pipeline.FetchError{Class: pipeline.FailSelectorGone, Reason: reason}
}
