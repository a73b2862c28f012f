package fetch

import (
	"cmp"
	"context"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// extractValue returns the text of a document that is a value: t is the text that its view selects.
func extractValue(ctx context.Context, v pipeline.Value, raw pipeline.Raw, t pipeline.Text) (string, error) {
	content, unit, byProgram := strings.TrimSpace(t.Content), "", isJSON(raw)
	tag := cmp.Or(v.Language, t.Language)
	if v.Offer != "" {
		found, err := findOffer(ctx, raw, tag)
		if err != nil {
			return "", err
		}
		switch v.Offer {
		case pipeline.OfferPrice:
			if content, unit, byProgram = found.price, found.currency, !found.written; content != "" && v.Pattern == "" {
				if found.err != nil {
					return "", notNumber(found.err, content)
				}
				content, byProgram = found.number, true
			}
		case pipeline.OfferCurrency:
			content = found.currency
		case pipeline.OfferAvailability:
			content = found.availability
		}
		if content == "" {
			return "", noValueError("the page declares an offer (schema.org) without " + v.Offer)
		}
	}
	pattern, err := v.Group()
	if err != nil {
		return "", err
	}
	if pattern != nil {
		content = joinSplit(content, tag, unit)
		at := pattern.FindStringSubmatchIndex(content)
		if at == nil || at[2] < 0 {
			return "", noValueError("the pattern of the value matches nothing")
		}
		if !v.Text() && (strings.HasSuffix(content[:at[2]], split) || strings.HasPrefix(content[at[3]:], split)) {
			return "", notNumber(errSplit, content)
		}
		content = content[at[2]:at[3]]
	}
	if v.Text() {
		word := strings.Join(strings.Fields(strings.Map(dropUnprintable, content)), " ")
		if n := utf8.RuneCountInString(word); n == 0 || n > pipeline.MaxValueLength {
			return "", noValueError("the value is empty or longer than 200 characters; select less of the page")
		}
		return word + "\n", nil
	}
	n := content
	if !byProgram || !pipeline.IsNumber(content) {
		if n, unit, err = findNumber(content, tag, unit); err != nil {
			return "", notNumber(err, content)
		}
	}
	return strings.TrimSpace(n+" "+unit) + "\n", nil
}

// notNumber is the error of a value that is not a number, or not a certain one.
func notNumber(err error, content string) error {
	content = strings.ReplaceAll(content, split, "|")
	return noValueError(err.Error() + ": " + truncate(strings.Join(strings.Fields(content), " "), 60))
}

// isJSON reports whether raw is JSON, whose numbers have a decimal point, in any language.
func isJSON(raw pipeline.Raw) bool {
	mediaType, _, _ := mime.ParseMediaType(raw.ContentType)
	return mediaType == "application/json" || baseType(mediaType) == "application/json"
}

// struckOut selects what HTML strikes out.
const struckOut = "del, s, strike, [style*=line-through]"

// struckPattern is the beginning of an element of HTML whose text is struck out, or its style.
var struckPattern = regexp.MustCompile(`(?i)<(?:del|s|strike)[\s>]|line-through`)

// strikesOut reports whether raw is HTML in which text is struck out.
func strikesOut(raw pipeline.Raw) bool {
	mediaType, _, _ := mime.ParseMediaType(raw.ContentType)
	return (mediaType == "text/html" || mediaType == "application/xhtml+xml") && struckPattern.Match(raw.Body)
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
