package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// SetOption sets the option o of s to what texts say, as flags and forms have it: one text, or any number for a list.
// Its error is a mistake in the field o.Name.
func SetOption(s *pipeline.Subscription, o pipeline.Option, texts ...string) error {
	text := strings.Join(texts, "\n")
	if o.Words {
		texts = splitWords(texts)
	}
	v := o.Field(s)
	if v.SetZero(); v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	var err error
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		if o.Name == "sitemap" {
			s.URL, text = text, "true"
		}
		if *p, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("%q is not true or false", text)
		}
	case *int:
		if o.Name == "expire.after" {
			*p, err = pipeline.ParseAfter(text)
		} else if *p, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("%q is not a whole number", text)
		} else if why := o.OutOfBounds(*p); why != "" {
			err = errors.New(why)
		}
	case *[]string:
		*p = texts
	case *[]pipeline.Event:
		for _, e := range texts {
			*p = append(*p, pipeline.Event(e))
		}
		if len(texts) == 0 {
			err = errors.New("name added, removed or both")
		}
	case *[]pipeline.Selector:
		for _, t := range texts {
			one, mistake := ParseSelector(t)
			*p, err = append(*p, one), cmp.Or(err, mistake)
		}
	case *pipeline.Amount:
		if *p = pipeline.Amount(text); !pipeline.IsNumber(strings.TrimSuffix(text, "%")) {
			err = fmt.Errorf("%.50q is not a number; write one such as 100 or 99.90", text)
		}
	case *pipeline.Interval, *pipeline.MinChange:
		err = parseScalar(text, p)
	case *pipeline.Digest:
		*p, err = pipeline.ParseDigest(text)
	case *time.Duration:
		*p, err = pipeline.ParseRetry(text)
	case encoding.TextUnmarshaler:
		err = p.UnmarshalText([]byte(text))
	default:
		panic(fmt.Sprintf("config: the option %s has type %T, which SetOption does not know", o.Name, p))
	}
	if err != nil {
		return &pipeline.FieldError{Field: o.Name, Reason: err.Error()}
	}
	return nil
}

// OptionTexts returns the option o of s as SetOption reads it. It returns nothing where it is the default.
func OptionTexts(s pipeline.Subscription, o pipeline.Option) []string {
	plain := plainSubscription(s)
	v := o.Field(&s)
	if v.IsZero() || reflect.DeepEqual(v.Interface(), o.Field(&plain).Interface()) {
		return nil
	}
	switch after, retry := s.Expire.Texts(); o.Name {
	case "expire.after":
		return []string{after}
	case "expire.retry":
		return []string{retry}
	}
	if o.Kind() != reflect.Slice {
		return []string{fmt.Sprint(encode(v))}
	}
	var all []string
	for i := range v.Len() {
		text, plain := encode(v.Index(i)).(string)
		if !plain { // a range
			text = onOneLine(encode(v.Index(i)))
		}
		all = append(all, text)
	}
	if o.Words {
		return []string{strings.Join(all, ", ")}
	}
	return all
}

// splitWords returns the words in texts, which are separated by commas, each once.
func splitWords(texts []string) []string {
	var words []string
	for _, text := range texts {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}
